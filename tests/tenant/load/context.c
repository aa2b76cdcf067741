/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: a second context that goes with what is in it, and the end of the primary one. */
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

/* What the context took may be another process's by now; sooner or later it gives it back. */
static CUresult retain(struct load *l)
{
	const struct door *cu = &l->client->cu;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	for (unsigned i = 0; i < WAITS_MOST && r == CUDA_ERROR_OUT_OF_MEMORY; i++) {
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

const struct load_family load_second_context = {.weight = 4, .take = use_second};
const struct load_family load_primary_context = {
	.weight = 4, .needs_solitude = true, .take = end_primary};
