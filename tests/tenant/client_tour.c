/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client's tour: every way to take device memory and to give it back, once each.
 *
 * It is made for drivers and libraries that fail in the middle: whatever a call answers, the tour
 * goes on, gives back what it took, and tells all results that were not success. What is new among
 * the covered functions belongs into one of the ways here; faults are then tried on it, too.
 */
#include "tests/tenant/client_tour.h"

#include <stdio.h>
#include <string.h>

#define MIB	     TOUR_MIB
#define INSIST_TIMES 3

bool tour_went_well(struct tour *t, CUresult r)
{
	if (r == CUDA_SUCCESS)
		return true;
	for (unsigned i = 0; i < t->result_count; i++)
		if (t->results[i] == (int)r)
			return false;
	if (t->result_count < TOUR_RESULTS)
		t->results[t->result_count++] = (int)r;
	return false;
}

void tour_give(struct tour *t, tour_give_fn *how, uint64_t value, uint64_t more)
{
	for (unsigned i = 0; i < INSIST_TIMES; i++)
		if (tour_went_well(t, how(t, value, more)))
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
		if (!tour_went_well(t, t->cu->cuMemAlloc_v2(&p[i], sizes[i])))
			p[i] = 0;
	for (unsigned i = 0; i < 4; i++)
		if (p[i])
			tour_give(t, free_plain, p[i], 0);
}

static void pitched(struct tour *t)
{
	CUdeviceptr p;
	size_t pitch;

	if (tour_went_well(t, t->cu->cuMemAllocPitch_v2(&p, &pitch, 1000, 4000, 4)))
		tour_give(t, free_plain, p, 0);
}

static void managed(struct tour *t)
{
	CUdeviceptr p;

	if (tour_went_well(t, t->cu->cuMemAllocManaged(&p, 3 * MIB, CU_MEM_ATTACH_GLOBAL)))
		tour_give(t, free_plain, p, 0);
}

static void asynchronous(struct tour *t)
{
	CUdeviceptr a, b;
	bool has_a = tour_went_well(t, t->cu->cuMemAllocAsync(&a, 40 * MIB, NULL));
	bool has_b = tour_went_well(t, t->cu->cuMemAllocAsync(&b, 1000, NULL));

	if (has_a)
		tour_give(t, free_async, a, 0);
	if (has_b)
		tour_give(t, free_plain, b, 0);
	tour_give(t, synchronize, 0, 0);
}

static void on_a_stream(struct tour *t)
{
	CUstream stream;
	CUdeviceptr p;

	if (!tour_went_well(t, t->cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
		return;
	if (tour_went_well(t, t->cu->cuMemAllocAsync(&p, 2 * MIB, stream)))
		tour_give(t, free_async, p, (uintptr_t)stream);
	tour_went_well(t, t->cu->cuStreamSynchronize(stream));
	tour_give(t, end_stream, (uintptr_t)stream, 0);
	tour_give(t, synchronize, 0, 0);
}

static void from_a_pool(struct tour *t)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = t->client->device}};
	CUmemoryPool pool;
	CUdeviceptr p;

	if (!tour_went_well(t, t->cu->cuMemPoolCreate(&pool, &props)))
		return;
	if (tour_went_well(t, t->cu->cuMemAllocFromPoolAsync(&p, 8 * MIB, pool, NULL)))
		tour_give(t, free_async, p, 0);
	tour_give(t, synchronize, 0, 0);
	tour_went_well(t, t->cu->cuMemPoolTrimTo(pool, 0));
	tour_give(t, end_pool, (uintptr_t)pool, 0);
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

	if (!tour_went_well(t, t->cu->cuMemCreate(&handle, bytes, &prop, 0)))
		return;
	if (!tour_went_well(t, t->cu->cuMemAddressReserve(&at, bytes, 0, 0, 0))) {
		tour_give(t, release, handle, 0);
		return;
	}
	is_mapped = tour_went_well(t, t->cu->cuMemMap(at, bytes, 0, handle, 0));
	tour_give(t, release, handle, 0);
	if (is_mapped && tour_went_well(t,
				 t->cu->cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at)))
		tour_give(t, release, again, 0);
	if (is_mapped)
		tour_give(t, unmap, at, bytes);
	tour_give(t, unreserve, at, bytes);
}

static CUresult unbind(const struct tour *t, uint64_t object, uint64_t bytes)
{
	return t->cu->cuMulticastUnbind(object, t->client->device, 0, bytes);
}

/* The object keeps the memory: until it is unbound, and until the object ends. Only on the simulated node. */
static void bound(struct tour *t)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = t->client->device}};
	CUmulticastObjectProp object_prop = {.numDevices = 1, .size = 8 * MIB};
	CUmemGenericAllocationHandle object, memory;

	if (!tour_went_well(t, t->cu->cuMulticastCreate(&object, &object_prop)))
		return;
	if (tour_went_well(t, t->cu->cuMulticastAddDevice(object, t->client->device)) &&
		tour_went_well(t, t->cu->cuMemCreate(&memory, 4 * MIB, &prop, 0))) {
		if (tour_went_well(t, t->cu->cuMulticastBindMem(object, 0, memory, 0, 4 * MIB, 0)))
			tour_give(t, unbind, object, 4 * MIB);
		tour_went_well(
			t, t->cu->cuMulticastBindMem(object, 4 * MIB, memory, 0, 4 * MIB, 0));
		tour_give(t, release, memory, 0);
	}
	tour_give(t, release, object, 0);
}

/* Its blocks go with it. */
static void second_context(struct tour *t)
{
	CUdeviceptr p;
	CUcontext context;

	if (!tour_went_well(t, t->cu->cuCtxCreate_v2(&context, 0, t->client->device)))
		return;
	tour_went_well(t, t->cu->cuMemAlloc_v2(&p, 4 * MIB));
	tour_went_well(t, t->cu->cuMemAlloc_v2(&p, 500));
	tour_give(t, end_context, (uintptr_t)context, 0);
	tour_give(t, use_own_context, 0, 0);
}

static void primary_once_more(struct tour *t)
{
	CUcontext context;

	if (tour_went_well(t, t->cu->cuDevicePrimaryCtxRetain(&context, t->client->device)))
		tour_give(t, release_primary, (uint64_t)t->client->device, 0);
}

static void questions(struct tour *t)
{
	size_t free_bytes, total_bytes;

	tour_went_well(t, t->cu->cuMemGetInfo_v2(&free_bytes, &total_bytes));
	tour_went_well(t, t->cu->cuDeviceTotalMem_v2(&total_bytes, t->client->device));
}

/* Far over any quota, so that all that may be had back is looked for. */
static void too_much(struct tour *t)
{
	CUdeviceptr p;

	if (t->cu->cuMemAlloc_v2(&p, 4000000 * MIB) == CUDA_SUCCESS)
		tour_give(t, free_plain, p, 0);
}

static tour_way_fn *const ways[] = {plain, pitched, managed, asynchronous, on_a_stream, from_a_pool,
	mapped, bound, second_context, primary_once_more, questions, too_much};

/* tour: answers each result that was not success, and how much could not be given back */
static int run_tour(struct client *c, char **word, unsigned count)
{
	struct tour t = {.cu = &c->cu, .client = c};

	for (unsigned i = 0; i < INSIST_TIMES; i++)
		if (tour_went_well(&t, c->cu.cuCtxGetCurrent(&t.context)))
			break;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		ways[i](&t);
	for (unsigned i = 0; tour_work_ways[i]; i++)
		tour_work_ways[i](&t);
	for (unsigned i = 0; i < t.result_count; i++)
		client_say(c, " result=%d", t.results[i]);
	return t.left ? CLIENT_FAILED : 0;
}

const struct client_command client_tour_commands[] = {
	{"tour", 0, run_tour, ""},
	{0},
};
