/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: memory that is bound to a multicast object, of this process alone or exported. Not for a card. */
#include <unistd.h>

#include "tests/tenant/load/load.h"

#define GRAIN (2 * LOAD_MIB)

/* There is room for the memory twice: once for a moment (use_bound()). */
static CUresult make_object(struct load *l, uint64_t bytes, CUmemAllocationHandleType type,
	CUmemGenericAllocationHandle *ret_object)
{
	CUmulticastObjectProp prop = {.numDevices = 1, .size = 2 * bytes, .handleTypes = type};
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuMulticastCreate(ret_object, &prop);

	return r == CUDA_SUCCESS ? cu->cuMulticastAddDevice(*ret_object, l->client->device) : r;
}

static CUresult export_object(struct load *l, CUmemGenericAllocationHandle object)
{
	int fd = -1;
	CUresult r = l->client->cu.cuMemExportToShareableHandle(
		&fd, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

	if (r == CUDA_SUCCESS)
		close(fd);
	return r;
}

static CUresult bind_handle(
	struct load *l, const struct load_held *held, uint64_t offset, bool is_named)
{
	if (is_named)
		return LOAD_FN(cuMulticastBindMem_v2)(
			held->value, l->client->device, offset, held->other, 0, held->bytes, 0);
	return l->client->cu.cuMulticastBindMem(
		held->value, offset, held->other, 0, held->bytes, 0);
}

/* By an address at which the memory is for a moment. */
static CUresult bind_address(struct load *l, const struct load_held *held, bool is_named)
{
	const struct door *cu = &l->client->cu;
	CUdeviceptr at = 0;
	CUresult r = cu->cuMemAddressReserve(&at, held->bytes, 0, 0, 0);

	if (r == CUDA_SUCCESS)
		r = cu->cuMemMap(at, held->bytes, 0, held->other, 0);
	if (r == CUDA_SUCCESS && is_named)
		r = LOAD_FN(cuMulticastBindAddr_v2)(
			held->value, l->client->device, 0, at, held->bytes, 0);
	else if (r == CUDA_SUCCESS)
		r = cu->cuMulticastBindAddr(held->value, 0, at, held->bytes, 0);
	if (r == CUDA_SUCCESS)
		r = cu->cuMemUnmap(at, held->bytes);
	return r == CUDA_SUCCESS ? cu->cuMemAddressFree(at, held->bytes) : r;
}

static CUresult unbind(struct load *l, const struct load_held *held, uint64_t offset)
{
	return l->client->cu.cuMulticastUnbind(held->value, l->client->device, offset, held->bytes);
}

/* Only the creation can be refused for lack of memory; then nothing was taken. Half of it is kept by the object alone. */
static CUresult take(struct load *l, CUmemAllocationHandleType type, struct load_held *ret_held)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = type,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
	const struct door *cu = &l->client->cu;
	bool is_named = load_below(l, 2), is_by_address = load_below(l, 2);
	CUresult r;

	ret_held->bytes = (load_random_bytes(l) + GRAIN) / GRAIN * GRAIN;
	r = cu->cuMemCreate(&ret_held->other, ret_held->bytes, &prop, 0);
	if (r != CUDA_SUCCESS)
		return r;
	r = make_object(l, ret_held->bytes, type, &ret_held->value);
	if (r == CUDA_SUCCESS)
		r = is_by_address ? bind_address(l, ret_held, is_named)
				  : bind_handle(l, ret_held, 0, is_named);
	if (r != CUDA_SUCCESS || load_below(l, 2))
		return r;
	r = cu->cuMemRelease(ret_held->other);
	ret_held->other = 0;
	return r;
}

static CUresult take_bound(struct load *l, struct load_held *ret_held)
{
	return take(l, CU_MEM_HANDLE_TYPE_NONE, ret_held);
}

static CUresult take_bound_shared(struct load *l, struct load_held *ret_held)
{
	CUresult r = take(l, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, ret_held);

	return r == CUDA_SUCCESS ? export_object(l, ret_held->value) : r;
}

static CUresult release(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuMemRelease(held->value);

	return r == CUDA_SUCCESS && held->other ? cu->cuMemRelease(held->other) : r;
}

/* What others may have keeps the memory until that is unbound. */
static CUresult give_bound_shared(struct load *l, const struct load_held *held)
{
	CUresult r = unbind(l, held, 0);

	return r == CUDA_SUCCESS ? release(l, held) : r;
}

/* Half of them are unbound by the end of the object. */
static CUresult give_bound(struct load *l, const struct load_held *held)
{
	return load_below(l, 2) ? give_bound_shared(l, held) : release(l, held);
}

static CUresult use_bound(struct load *l, const struct load_held *held)
{
	CUresult r = CUDA_SUCCESS;

	if (held->other)
		r = bind_handle(l, held, held->bytes, load_below(l, 2));
	return r == CUDA_SUCCESS && held->other ? unbind(l, held, held->bytes) : r;
}

const struct load_family load_bound = {.bears_misuse = true,
	.weight = 32,
	.symbol = "cuMulticastBindMem",
	.take = take_bound,
	.give = give_bound,
	.use = use_bound};
const struct load_family load_bound_shared = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuMulticastBindMem",
	.take = take_bound_shared,
	.give = give_bound_shared,
	.use = use_bound};
