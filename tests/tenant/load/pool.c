/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load families: stream-ordered memory of the current pool, of one of our own that keeps what is
 * freed, of one made current for a moment, and of one that is destroyed at once, also of managed memory; and waits, at which
 * pools give back what is unused.
 */
#include "tests/tenant/load/load.h"

#define KEPT_BYTES (64 * LOAD_MIB)

static CUmemPoolProps props_of(const struct load *l)
{
	return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
}

static CUresult make_pool(struct load *l, CUmemoryPool *ret_pool)
{
	CUmemPoolProps props = props_of(l);

	return l->client->cu.cuMemPoolCreate(ret_pool, &props);
}

static CUmemoryPool own_pool(const struct load *l)
{
	return (CUmemoryPool)(uintptr_t)l->own[LOAD_own_pool];
}

static CUresult begin_own(struct load *l)
{
	cuuint64_t kept = KEPT_BYTES;
	CUmemoryPool pool = NULL;
	CUresult r = make_pool(l, &pool);

	if (r != CUDA_SUCCESS)
		return r;
	l->own[LOAD_own_pool] = (uintptr_t)pool;
	return l->client->cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
}

static CUresult end_own(struct load *l)
{
	return l->client->cu.cuMemPoolDestroy(own_pool(l));
}

static CUresult take_async(struct load *l, struct load_held *ret_held)
{
	return l->client->cu.cuMemAllocAsync(&ret_held->value, load_random_bytes(l), NULL);
}

static CUresult take_own(struct load *l, struct load_held *ret_held)
{
	return l->client->cu.cuMemAllocFromPoolAsync(
		&ret_held->value, load_random_bytes(l), own_pool(l), NULL);
}

static CUresult take_current(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUmemoryPool before = NULL;
	CUresult r = cu->cuDeviceGetMemPool(&before, l->client->device), back;

	if (r == CUDA_SUCCESS)
		r = cu->cuDeviceSetMemPool(l->client->device, own_pool(l));
	if (r != CUDA_SUCCESS)
		return r;
	r = take_async(l, ret_held);
	back = cu->cuDeviceSetMemPool(l->client->device, before);
	return back == CUDA_SUCCESS ? r : back;
}

/* From a pool that is destroyed at once. */
static CUresult take_from(struct load *l, const CUmemPoolProps *props, struct load_held *ret_held)
{
	CUmemoryPool pool = NULL;
	CUresult r = l->client->cu.cuMemPoolCreate(&pool, props), end;

	if (r != CUDA_SUCCESS)
		return r;
	r = l->client->cu.cuMemAllocFromPoolAsync(
		&ret_held->value, load_random_bytes(l), pool, NULL);
	end = l->client->cu.cuMemPoolDestroy(pool);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult take_lost(struct load *l, struct load_held *ret_held)
{
	CUmemPoolProps props = props_of(l);

	return take_from(l, &props, ret_held);
}

/* Of managed memory, with a place or without. */
static CUresult take_managed(struct load *l, struct load_held *ret_held)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED};

	CUresult r;

	if (load_below(l, 2))
		props.location = props_of(l).location;
	r = take_from(l, &props, ret_held);
	/* Where nobody could say whose it is the library refuses it. */
	return r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : r;
}

static CUresult give(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;

	return load_below(l, 4) ? cu->cuMemFreeAsync(held->value, NULL)
				: cu->cuMemFree_v2(held->value);
}

static CUresult wait(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;

	switch (load_below(l, 4)) {
	case 0:
		return cu->cuStreamSynchronize(NULL);
	case 1:
		return own_pool(l) ? cu->cuMemPoolTrimTo(own_pool(l), load_below(l, KEPT_BYTES))
				   : CUDA_SUCCESS;
	default:
		return cu->cuCtxSynchronize();
	}
}

const struct load_family load_async = {
	.bears_misuse = true, .weight = 128, .take = take_async, .give = give};
const struct load_family load_own_pool = {.bears_misuse = true,
	.weight = 64,
	.begin = begin_own,
	.end = end_own,
	.take = take_own,
	.give = give};
const struct load_family load_current_pool = {
	.weight = 16, .needs_solitude = true, .take = take_current, .give = give};
const struct load_family load_lost_pool = {
	.bears_misuse = true, .weight = 8, .take = take_lost, .give = give};
const struct load_family load_managed_pool = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuMemPoolCreate",
	.take = take_managed,
	.give = give};
const struct load_family load_wait = {.weight = 64, .take = wait};
