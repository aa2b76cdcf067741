/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client's tour: every way to take device memory and to give it back, once each.
 *
 * It is made for drivers and libraries that fail in the middle: whatever a call answers, the tour
 * goes on, gives back what it took, and tells all results that were not success. What is new among
 * the covered functions belongs into one of the ways here; faults are then tried on it, too.
 */
#include "tests/tenant/client.h"

#include <stdio.h>
#include <string.h>

#define RESULTS	     16
#define MIB	     (UINT64_C(1) << 20)
#define INSIST_TIMES 3

struct tour {
	const struct door *cu;
	struct client *client;
	CUcontext context;
	int results[RESULTS]; /* each that was not success, once */
	unsigned result_count;
	unsigned left; /* things that could not be given back */
};

static bool went_well(struct tour *t, CUresult r)
{
	if (r == CUDA_SUCCESS)
		return true;
	for (unsigned i = 0; i < t->result_count; i++)
		if (t->results[i] == (int)r)
			return false;
	if (t->result_count < RESULTS)
		t->results[t->result_count++] = (int)r;
	return false;
}

/* One way to give something back; more is its size, or what else there is to say. */
typedef CUresult give_fn(const struct tour *t, uint64_t value, uint64_t more);

/* A fault comes once: what could not be given back goes at the next attempt. */
static void give(struct tour *t, give_fn *how, uint64_t value, uint64_t more)
{
	for (unsigned i = 0; i < INSIST_TIMES; i++)
		if (went_well(t, how(t, value, more)))
			return;
	t->left++;
}

static CUresult free_plain(const struct tour *t, uint64_t pointer, uint64_t more)
{
	return t->cu->cuMemFree_v2(pointer);
}

static CUresult free_async(const struct tour *t, uint64_t pointer, uint64_t stream)
{
	return t->cu->cuMemFreeAsync(pointer, (CUstream)(uintptr_t)stream);
}

static CUresult synchronize(const struct tour *t, uint64_t value, uint64_t more)
{
	return t->cu->cuCtxSynchronize();
}

static CUresult end_stream(const struct tour *t, uint64_t stream, uint64_t more)
{
	return t->cu->cuStreamDestroy_v2((CUstream)(uintptr_t)stream);
}

static CUresult end_pool(const struct tour *t, uint64_t pool, uint64_t more)
{
	return t->cu->cuMemPoolDestroy((CUmemoryPool)(uintptr_t)pool);
}

static CUresult release(const struct tour *t, uint64_t handle, uint64_t more)
{
	return t->cu->cuMemRelease(handle);
}

static CUresult unmap(const struct tour *t, uint64_t at, uint64_t bytes)
{
	return t->cu->cuMemUnmap(at, bytes);
}

static CUresult unreserve(const struct tour *t, uint64_t at, uint64_t bytes)
{
	return t->cu->cuMemAddressFree(at, bytes);
}

static CUresult end_context(const struct tour *t, uint64_t context, uint64_t more)
{
	return t->cu->cuCtxDestroy_v2((CUcontext)(uintptr_t)context);
}

static CUresult use_own_context(const struct tour *t, uint64_t value, uint64_t more)
{
	return t->cu->cuCtxSetCurrent(t->context);
}

static CUresult release_primary(const struct tour *t, uint64_t ordinal, uint64_t more)
{
	return t->cu->cuDevicePrimaryCtxRelease_v2((CUdevice)ordinal);
}

static void plain(struct tour *t)
{
	static const uint64_t sizes[] = {1000, 5 * MIB, 3000, 2 * MIB};
	CUdeviceptr p[4] = {0};

	for (unsigned i = 0; i < 4; i++)
		if (!went_well(t, t->cu->cuMemAlloc_v2(&p[i], sizes[i])))
			p[i] = 0;
	for (unsigned i = 0; i < 4; i++)
		if (p[i])
			give(t, free_plain, p[i], 0);
}

static void pitched(struct tour *t)
{
	CUdeviceptr p;
	size_t pitch;

	if (went_well(t, t->cu->cuMemAllocPitch_v2(&p, &pitch, 1000, 4000, 4)))
		give(t, free_plain, p, 0);
}

static void managed(struct tour *t)
{
	CUdeviceptr p;

	if (went_well(t, t->cu->cuMemAllocManaged(&p, 3 * MIB, CU_MEM_ATTACH_GLOBAL)))
		give(t, free_plain, p, 0);
}

static void asynchronous(struct tour *t)
{
	CUdeviceptr a, b;
	bool has_a = went_well(t, t->cu->cuMemAllocAsync(&a, 40 * MIB, NULL));
	bool has_b = went_well(t, t->cu->cuMemAllocAsync(&b, 1000, NULL));

	if (has_a)
		give(t, free_async, a, 0);
	if (has_b)
		give(t, free_plain, b, 0);
	give(t, synchronize, 0, 0);
}

static void on_a_stream(struct tour *t)
{
	CUstream stream;
	CUdeviceptr p;

	if (!went_well(t, t->cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
		return;
	if (went_well(t, t->cu->cuMemAllocAsync(&p, 2 * MIB, stream)))
		give(t, free_async, p, (uintptr_t)stream);
	went_well(t, t->cu->cuStreamSynchronize(stream));
	give(t, end_stream, (uintptr_t)stream, 0);
	give(t, synchronize, 0, 0);
}

static void from_a_pool(struct tour *t)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = t->client->device}};
	CUmemoryPool pool;
	CUdeviceptr p;

	if (!went_well(t, t->cu->cuMemPoolCreate(&pool, &props)))
		return;
	if (went_well(t, t->cu->cuMemAllocFromPoolAsync(&p, 8 * MIB, pool, NULL)))
		give(t, free_async, p, 0);
	give(t, synchronize, 0, 0);
	went_well(t, t->cu->cuMemPoolTrimTo(pool, 0));
	give(t, end_pool, (uintptr_t)pool, 0);
}

/* The handle goes first, and the mapping keeps the memory, once with another reference to it. */
static void mapped(struct tour *t)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = t->client->device}};
	CUmemGenericAllocationHandle handle, again;
	const size_t bytes = 6 * MIB;
	CUdeviceptr at;
	bool is_mapped;

	if (!went_well(t, t->cu->cuMemCreate(&handle, bytes, &prop, 0)))
		return;
	if (!went_well(t, t->cu->cuMemAddressReserve(&at, bytes, 0, 0, 0))) {
		give(t, release, handle, 0);
		return;
	}
	is_mapped = went_well(t, t->cu->cuMemMap(at, bytes, 0, handle, 0));
	give(t, release, handle, 0);
	if (is_mapped &&
		went_well(t, t->cu->cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at)))
		give(t, release, again, 0);
	if (is_mapped)
		give(t, unmap, at, bytes);
	give(t, unreserve, at, bytes);
}

/* Its blocks go with it. */
static void second_context(struct tour *t)
{
	CUdeviceptr p;
	CUcontext context;

	if (!went_well(t, t->cu->cuCtxCreate_v2(&context, 0, t->client->device)))
		return;
	went_well(t, t->cu->cuMemAlloc_v2(&p, 4 * MIB));
	went_well(t, t->cu->cuMemAlloc_v2(&p, 500));
	give(t, end_context, (uintptr_t)context, 0);
	give(t, use_own_context, 0, 0);
}

static void primary_once_more(struct tour *t)
{
	CUcontext context;

	if (went_well(t, t->cu->cuDevicePrimaryCtxRetain(&context, t->client->device)))
		give(t, release_primary, (uint64_t)t->client->device, 0);
}

static void questions(struct tour *t)
{
	size_t free_bytes, total_bytes;

	went_well(t, t->cu->cuMemGetInfo_v2(&free_bytes, &total_bytes));
	went_well(t, t->cu->cuDeviceTotalMem_v2(&total_bytes, t->client->device));
}

/* Far over any quota, so that all that may be had back is looked for. */
static void too_much(struct tour *t)
{
	CUdeviceptr p;

	if (t->cu->cuMemAlloc_v2(&p, 4000000 * MIB) == CUDA_SUCCESS)
		give(t, free_plain, p, 0);
}

static void (*const ways[])(struct tour *t) = {plain, pitched, managed, asynchronous, on_a_stream,
	from_a_pool, mapped, second_context, primary_once_more, questions, too_much};

/* tour: answers each result that was not success, and how much could not be given back */
static int run_tour(struct client *c, char **word, unsigned count)
{
	struct tour t = {.cu = &c->cu, .client = c};

	for (unsigned i = 0; i < INSIST_TIMES; i++)
		if (went_well(&t, c->cu.cuCtxGetCurrent(&t.context)))
			break;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		ways[i](&t);
	for (unsigned i = 0; i < t.result_count; i++)
		client_say(c, " result=%d", t.results[i]);
	return t.left ? CLIENT_FAILED : 0;
}

const struct client_command client_tour_commands[] = {
	{"tour", 0, run_tour, ""},
	{0},
};
