/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call answers in the program's memory is changed at the instant after the driver has written it, as a second
 * thread may do: into the name of something else, which the books then take for the new memory. A process each
 * tries a kind of memory.
 *
 * The answer lies in a page that cannot be written: the signal lets the write happen, and one instruction later the
 * answer is changed.
 */
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	    200
#define BLOCK_BYTES (48 * MIB)
#define ROWS	    2048
#define PAGE_BYTES  4096
#define STEP_FLAG   0x100 /* of x86: a trap after the next instruction */

static volatile uint64_t *answer; /* in a page of its own */
static uint64_t wrong;		  /* what it becomes */

#ifdef __x86_64__
static void let_write(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	mprotect((void *)answer, PAGE_BYTES, PROT_READ | PROT_WRITE);
	u->uc_mcontext.gregs[REG_EFL] |= STEP_FLAG;
}

static void change(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	*answer = wrong;
	mprotect((void *)answer, PAGE_BYTES, PROT_READ);
	u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_FLAG;
}

static void take_signals(void)
{
	struct sigaction write = {.sa_sigaction = let_write, .sa_flags = SA_SIGINFO};
	struct sigaction step = {.sa_sigaction = change, .sa_flags = SA_SIGINFO};

	MUST(sigaction(SIGSEGV, &write, NULL));
	MUST(sigaction(SIGTRAP, &step, NULL));
}
#else
static void take_signals(void)
{
}
#endif

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
	answer = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(answer == MAP_FAILED);
	take_signals();
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
