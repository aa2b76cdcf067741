/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call answers in the program's memory is changed at the instant after the driver has written it, as a second
 * thread may do: into the name of something else, which the books then take for the new memory. A process each
 * tries a kind of memory.
 */
#include "tests/hostile/hostile.h"
#include "tests/hostile/watched.h"

#define ROUNDS	    200
#define BLOCK_BYTES (48 * MIB)
#define ROWS	    2048

static volatile uint64_t *answer; /* in a page of its own */
static uint64_t wrong;		  /* what it becomes */

static void change(void *page)
{
	*(volatile uint64_t *)page = wrong;
}

static CUresult allocate(void *to)
{
	return cuMemAlloc_v2(to, BLOCK_BYTES);
}

static CUresult allocate_pitch(void *to)
{
	size_t pitch;

	return cuMemAllocPitch_v2(to, &pitch, BLOCK_BYTES / 512, 512, 4);
}

static CUresult allocate_managed(void *to)
{
	return cuMemAllocManaged(to, BLOCK_BYTES, CU_MEM_ATTACH_GLOBAL);
}

static CUresult allocate_from_pool(void *to)
{
	return cuMemAllocAsync(to, BLOCK_BYTES, NULL);
}

static CUresult create_array(void *to)
{
	CUDA_ARRAY_DESCRIPTOR description = {.Width = BLOCK_BYTES / 16 / ROWS,
		.Height = ROWS,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 4};

	return cuArrayCreate_v2(to, &description);
}

static CUresult create_context(void *to)
{
	return cuCtxCreate_v2(to, 0, 0);
}

/* The first call makes what the others are taken for. */
static const struct way {
	CUresult (*first)(void *to), (*call)(void *to);
} ways[] = {
	{allocate, allocate},
	{allocate_pitch, allocate_pitch},
	{allocate_managed, allocate_managed},
	{allocate, allocate_from_pool},
	{create_array, create_array},
	{create_context, create_context},
};

static const struct way *way;

static void run(int index)
{
	(void)index;
	hostile_begin();
	MUST(way->first(&wrong));
	answer = watched_page(change);
	for (int i = 0; i < ROUNDS; i++)
		if (way->call((void *)answer) != CUDA_SUCCESS)
			break;
	hostile_look();
}

static void attack(void)
{
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		way = &ways[i];
		hostile_processes(1, run);
	}
}

int main(int argc, char **argv)
{
#ifndef __x86_64__
	return 77; /* skipped: the single step is written for x86 alone */
#endif
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB, .attack = attack});
}
