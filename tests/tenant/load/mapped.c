/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: memory that is created, and memory that is mapped, at one place or two. */
#include "tests/tenant/load/load.h"

#define GRAIN (2 * LOAD_MIB)

static CUresult create(struct load *l, uint64_t bytes, CUmemGenericAllocationHandle *ret_handle)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};

	return l->client->cu.cuMemCreate(ret_handle, bytes, &prop, 0);
}

static CUresult take_created(struct load *l, struct load_held *ret_held)
{
	ret_held->bytes = (load_random_bytes(l) + GRAIN) / GRAIN * GRAIN;
	return create(l, ret_held->bytes, &ret_held->value);
}

static CUresult give_created(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuMemRelease(held->value);
}

static CUresult map(struct load *l, CUmemGenericAllocationHandle handle, uint64_t bytes,
	CUdeviceptr *ret_address)
{
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuMemAddressReserve(ret_address, bytes, 0, 0, 0);

	return r == CUDA_SUCCESS ? cu->cuMemMap(*ret_address, bytes, 0, handle, 0) : r;
}

/* Another reference to what is mapped, and its end. */
static CUresult retain(struct load *l, CUdeviceptr address)
{
	const struct door *cu = &l->client->cu;
	CUmemGenericAllocationHandle again = 0;
	CUresult r = cu->cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address);

	return r == CUDA_SUCCESS ? cu->cuMemRelease(again) : r;
}

/* Only the creation can be refused for lack of memory; then nothing was taken. */
static CUresult take_mapped(struct load *l, struct load_held *ret_held)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult r;

	ret_held->bytes = (load_random_bytes(l) + GRAIN) / GRAIN * GRAIN;
	r = create(l, ret_held->bytes, &handle);
	if (r != CUDA_SUCCESS)
		return r;
	r = map(l, handle, ret_held->bytes, &ret_held->value);
	if (r == CUDA_SUCCESS && load_below(l, 4) == 0)
		r = map(l, handle, ret_held->bytes, &ret_held->other);
	if (r == CUDA_SUCCESS && load_below(l, 2) == 0)
		r = retain(l, ret_held->value);
	return r == CUDA_SUCCESS ? l->client->cu.cuMemRelease(handle) : r;
}

static CUresult unmap(struct load *l, CUdeviceptr address, uint64_t bytes)
{
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuMemUnmap(address, bytes);

	return r == CUDA_SUCCESS ? cu->cuMemAddressFree(address, bytes) : r;
}

static CUresult give_mapped(struct load *l, const struct load_held *held)
{
	CUresult r = unmap(l, held->value, held->bytes);

	return r == CUDA_SUCCESS && held->other ? unmap(l, held->other, held->bytes) : r;
}

/* Mapped for a moment. Where another thread releases it meanwhile, the mapping keeps it. */
static CUresult use_created(struct load *l, const struct load_held *held)
{
	CUdeviceptr at = 0;
	CUresult r = map(l, held->value, held->bytes, &at);

	return r == CUDA_SUCCESS ? unmap(l, at, held->bytes) : r;
}

static CUresult use_mapped(struct load *l, const struct load_held *held)
{
	return retain(l, held->value);
}

const struct load_family load_created = {.bears_misuse = true,
	.weight = 64,
	.take = take_created,
	.give = give_created,
	.use = use_created};
const struct load_family load_mapped = {.bears_misuse = true,
	.weight = 128,
	.take = take_mapped,
	.give = give_mapped,
	.use = use_mapped};
