/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random load. Everything taken stands in one table with the way in which it is given back, so
 * that giving back is one switch, and nothing can be forgotten at the end.
 */
#include "tests/tenant/load.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVE_MOST   64
#define FORK_ONE_IN 512
#define MIB	    (UINT64_C(1) << 20)

enum held_kind { HELD_PLAIN, HELD_ASYNC, HELD_MAPPED, HELD_CREATED };

struct held {
	enum held_kind kind;
	uint64_t value; /* block, address or handle */
	uint64_t bytes; /* of a mapping */
};

struct load {
	struct client *client;
	uint64_t state; /* of the generator */
	struct held held[LIVE_MOST];
	unsigned held_count;
	CUcontext context;
	CUmemoryPool pool; /* one of our own */
	struct load_count count;
};

/* xorshift64*: the same numbers everywhere for the same seed */
static uint64_t random_number(struct load *l)
{
	l->state ^= l->state >> 12;
	l->state ^= l->state << 25;
	l->state ^= l->state >> 27;
	return l->state * UINT64_C(2685821657736338717);
}

static uint64_t random_bytes(struct load *l)
{
	uint64_t n = random_number(l);

	switch (n % 4) {
	case 0:
		return 1 + (n >> 8) % 65536;
	case 1:
		return 1 + (n >> 8) % MIB;
	case 2:
		return 1 + (n >> 8) % (16 * MIB);
	default:
		return 1 + (n >> 8) % (96 * MIB);
	}
}

static void hold(struct load *l, enum held_kind kind, uint64_t value, uint64_t bytes)
{
	l->held[l->held_count++] = (struct held){kind, value, bytes};
}

static CUresult take_mapped(struct load *l, bool does_keep_handle)
{
	const struct door *cu = &l->client->cu;
	uint64_t bytes = (random_bytes(l) + 2 * MIB) & ~(2 * MIB - 1);
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
	CUmemGenericAllocationHandle handle = 0, again = 0;
	CUdeviceptr p = 0;
	CUresult r = cu->cuMemCreate(&handle, bytes, &prop, 0);

	if (r != CUDA_SUCCESS)
		return r;
	if (does_keep_handle) {
		hold(l, HELD_CREATED, handle, bytes);
		return CUDA_SUCCESS;
	}
	r = cu->cuMemAddressReserve(&p, bytes, 0, 0, 0);
	if (r == CUDA_SUCCESS)
		r = cu->cuMemMap(p, bytes, 0, handle, 0);
	if (r == CUDA_SUCCESS && random_number(l) % 2) {
		r = cu->cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)p);
		if (r == CUDA_SUCCESS)
			r = cu->cuMemRelease(again);
	}
	if (r == CUDA_SUCCESS)
		r = cu->cuMemRelease(handle);
	hold(l, HELD_MAPPED, p, bytes);
	return r;
}

static CUresult take_pitched(struct load *l)
{
	uint64_t n = random_number(l);
	size_t pitch;
	CUdeviceptr p = 0;
	CUresult r =
		l->client->cu.cuMemAllocPitch_v2(&p, &pitch, 1 + n % 4096, 1 + (n >> 16) % 4096, 4);

	if (r == CUDA_SUCCESS)
		hold(l, HELD_PLAIN, p, 0);
	return r;
}

/* A second context that takes a block and goes away with it. */
static CUresult use_context(struct load *l)
{
	const struct door *cu = &l->client->cu;
	CUcontext context = NULL;
	CUdeviceptr p;
	CUresult r = cu->cuCtxCreate_v2(&context, 0, l->client->device);

	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuMemAlloc_v2(&p, random_bytes(l));
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
		r = cu->cuCtxDestroy_v2(context);
	if (r == CUDA_SUCCESS)
		r = cu->cuCtxSetCurrent(l->context);
	return r;
}

static CUresult take(struct load *l)
{
	const struct door *cu = &l->client->cu;
	uint64_t n = random_number(l), bytes = random_bytes(l);
	enum held_kind kind = HELD_PLAIN;
	CUdeviceptr p = 0;
	CUresult r;

	switch (n % 16) {
	case 0:
		return take_mapped(l, true);
	case 1:
	case 2:
		return take_mapped(l, false);
	case 3:
		return take_pitched(l);
	case 4:
		return n >> 60 == 0 ? use_context(l) : take_pitched(l);
	case 5:
		r = cu->cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL);
		break;
	case 6:
	case 7:
		r = cu->cuMemAllocAsync(&p, bytes, NULL);
		kind = HELD_ASYNC;
		break;
	case 8:
		if (!l->pool)
			return CUDA_SUCCESS;
		r = cu->cuMemAllocFromPoolAsync(&p, bytes, l->pool, NULL);
		kind = HELD_ASYNC;
		break;
	default:
		r = cu->cuMemAlloc_v2(&p, bytes);
		break;
	}
	if (r == CUDA_SUCCESS)
		hold(l, kind, p, 0);
	return r;
}

static CUresult give(struct load *l)
{
	const struct door *cu = &l->client->cu;
	unsigned at = (unsigned)(random_number(l) % l->held_count);
	struct held h = l->held[at];
	CUresult r;

	l->held[at] = l->held[--l->held_count];
	switch (h.kind) {
	case HELD_ASYNC:
		if (random_number(l) % 4)
			return cu->cuMemFreeAsync(h.value, NULL);
		return cu->cuMemFree_v2(h.value);
	case HELD_MAPPED:
		r = cu->cuMemUnmap(h.value, h.bytes);
		return r == CUDA_SUCCESS ? cu->cuMemAddressFree(h.value, h.bytes) : r;
	case HELD_CREATED:
		return cu->cuMemRelease(h.value);
	default:
		return cu->cuMemFree_v2(h.value);
	}
}

/* A child of a process that has used CUDA: it may try, whatever it is told, and ends. */
static CUresult bear_child(struct load *l)
{
	pid_t child = fork();
	CUdeviceptr p;
	int status;

	if (child == 0) {
		if (random_number(l) % 2)
			l->client->cu.cuMemAlloc_v2(&p, MIB);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	return CUDA_SUCCESS;
}

static CUresult step(struct load *l)
{
	const struct door *cu = &l->client->cu;
	uint64_t n = random_number(l);

	if (n % FORK_ONE_IN == 0)
		return bear_child(l);
	if (n % 32 == 1)
		return cu->cuCtxSynchronize();
	if (n % 64 == 2 && l->pool)
		return cu->cuMemPoolTrimTo(l->pool, 0);
	if (l->held_count == LIVE_MOST || (l->held_count > 0 && n >> 63))
		return give(l);
	return take(l);
}

static void make_pool(struct load *l)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
	cuuint64_t keep = 64 * MIB;

	if (l->client->cu.cuMemPoolCreate(&l->pool, &props) != CUDA_SUCCESS)
		l->pool = NULL;
	else
		l->client->cu.cuMemPoolSetAttribute(
			l->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
}

int load_run(
	struct client *client, uint64_t seed, uint64_t operations, struct load_count *ret_count)
{
	struct load l = {.client = client, .state = seed * 2 + 1};
	CUresult r = client->cu.cuCtxGetCurrent(&l.context);

	*ret_count = l.count;
	if (r != CUDA_SUCCESS)
		return (int)r;
	make_pool(&l);
	while (l.count.done < operations && r == CUDA_SUCCESS) {
		r = step(&l);
		l.count.done++;
		if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			l.count.refused++;
			r = CUDA_SUCCESS;
		}
	}
	while (l.held_count > 0 && r == CUDA_SUCCESS)
		r = give(&l);
	if (r == CUDA_SUCCESS)
		r = client->cu.cuCtxSynchronize();
	if (r == CUDA_SUCCESS && l.pool)
		r = client->cu.cuMemPoolDestroy(l.pool);
	*ret_count = l.count;
	return (int)r;
}
