/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load families: a second context that goes with what is in it, contexts that stay for a while, more references to the
 * primary one, and its end.
 */
#include <unistd.h>

#include "tests/tenant/load/load.h"

#define WAIT_US	   1000
#define WAITS_MOST 20000

static CUresult use_second(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUcontext context = NULL;
	CUdeviceptr p;
	CUresult r = cu->cuCtxCreate_v2(&context, 0, l->client->device);

	if (r != CUDA_SUCCESS)
		return r;
	for (uint64_t blocks = load_below(l, 4); blocks > 0 && r == CUDA_SUCCESS; blocks--)
		r = cu->cuMemAlloc_v2(&p, load_random_bytes(l));
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
		r = cu->cuCtxDestroy_v2(context);
	return r == CUDA_SUCCESS ? cu->cuCtxSetCurrent(l->context) : r;
}

/* What the context took may be another process's by now, if there is one; sooner or later it gives it back. */
static CUresult retain(struct load *l)
{
	const struct door *cu = &l->client->cu;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	unsigned most = l->ends_process ? 1 : WAITS_MOST;

	for (unsigned i = 0; i < most && r == CUDA_ERROR_OUT_OF_MEMORY; i++) {
		if (i > 0)
			usleep(WAIT_US);
		r = cu->cuDevicePrimaryCtxRetain(&l->context, l->client->device);
	}
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return CUDA_ERROR_UNKNOWN;
	return r == CUDA_SUCCESS ? cu->cuCtxSetCurrent(l->context) : r;
}

/* Its last reference is released, or it is reset, which keeps the references. */
static CUresult end_primary(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUdevice device = l->client->device;
	bool is_reset = load_below(l, 2);
	CUresult r = load_leave_context(l);

	if (r == CUDA_SUCCESS)
		r = is_reset ? cu->cuDevicePrimaryCtxReset_v2(device)
			     : cu->cuDevicePrimaryCtxRelease_v2(device);
	if (r == CUDA_SUCCESS)
		r = retain(l);
	if (r == CUDA_SUCCESS && is_reset)
		r = cu->cuDevicePrimaryCtxRelease_v2(device);
	return r;
}

static CUresult allocate_some(struct load *l)
{
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr p;

	for (uint64_t blocks = load_below(l, 4); blocks > 0 && r == CUDA_SUCCESS; blocks--)
		r = l->client->cu.cuMemAlloc_v2(&p, load_random_bytes(l));
	return r == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : r;
}

static CUresult take_context(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUcontext context = NULL;
	CUresult r = cu->cuCtxCreate_v2(&context, 0, l->client->device), back;

	if (r != CUDA_SUCCESS)
		return r;
	ret_held->value = (uintptr_t)context;
	r = allocate_some(l);
	back = cu->cuCtxSetCurrent(l->context);
	return r == CUDA_SUCCESS ? back : r;
}

static CUresult give_context(struct load *l, const struct load_held *held)
{
	CUresult r = l->client->cu.cuCtxDestroy_v2((CUcontext)(uintptr_t)held->value);

	/* The driver takes it from the thread where it was current. */
	return r == CUDA_SUCCESS ? l->client->cu.cuCtxSetCurrent(l->context) : r;
}

/* Another thread, or this one, goes in, takes something and comes back. */
static CUresult use_context(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuCtxSetCurrent((CUcontext)(uintptr_t)held->value), back;

	if (r == CUDA_SUCCESS)
		r = allocate_some(l);
	back = cu->cuCtxSetCurrent(l->context);
	return r == CUDA_SUCCESS ? back : r;
}

static CUresult take_reference(struct load *l, struct load_held *ret_held)
{
	CUcontext context = NULL;
	CUresult r = l->client->cu.cuDevicePrimaryCtxRetain(&context, l->client->device);

	ret_held->value = (uintptr_t)context;
	return r;
}

static CUresult give_reference(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuDevicePrimaryCtxRelease_v2(l->client->device);
}

/* Beside threads that use it, for whom nothing is as it was. */
static CUresult reset(struct load *l, struct load_held *ret_held)
{
	return l->client->cu.cuDevicePrimaryCtxReset_v2(l->client->device);
}

const struct load_family load_primary_reset = {.weight = 1, .is_hostile = true, .take = reset};
const struct load_family load_context = {.bears_misuse = true,
	.weight = 4,
	.take = take_context,
	.give = give_context,
	.use = use_context};
const struct load_family load_primary_reference = {
	.weight = 4, .take = take_reference, .give = give_reference};
const struct load_family load_second_context = {.weight = 4, .take = use_second};
const struct load_family load_primary_context = {
	.weight = 4, .needs_solitude = true, .take = end_primary};
