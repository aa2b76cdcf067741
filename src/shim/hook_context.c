/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the beginning, and contexts. */
#include <errno.h>

#include "shim/contexts.h"
#include "shim/doors.h"

HOOK_BODY(cuInit, unsigned int flags)
{
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuInit(flags);
	/* A process of the slice is to be seen in it from its first use of CUDA on. */
	if (r == CUDA_SUCCESS)
		state_enter();
	return r;
}

/* The device whose contexts are to be charged; NULL where the driver is just to be asked. */
static CUresult enter(CUdevice ordinal, struct device **ret_device)
{
	int r;

	*ret_device = NULL;
	switch (state_enter()) {
	case STATE_OPEN:
		r = state_meet_device(ordinal, ret_device);
		return r == 0 || r == -ENODEV ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	case STATE_CLOSED:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_SUCCESS;
	}
}

HOOK_BODY(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice ordinal)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	struct device *device;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = enter(ordinal, &device);
	if (r == CUDA_SUCCESS && device && !contexts_primary_is_active(device))
		r = contexts_reserve(device, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuDevicePrimaryCtxRetain(context, ordinal);
	if (r != CUDA_SUCCESS || !device)
		return r;
	contexts_measure(device, &charge);
	contexts_compare_primary(device, *context, &charge);
	return r;
}

/* After a call that may have ended the primary context. */
static CUresult after(CUresult r, CUdevice ordinal)
{
	struct device *device;

	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN &&
		state_meet_device(ordinal, &device) == 0)
		contexts_compare_primary(device, NULL, NULL);
	return r;
}

HOOK_BODY(cuDevicePrimaryCtxRelease, CUdevice ordinal)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return after(cuda.cuDevicePrimaryCtxRelease(ordinal), ordinal);
}

HOOK_BODY(cuDevicePrimaryCtxRelease_v2, CUdevice ordinal)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return after(cuda.cuDevicePrimaryCtxRelease_v2(ordinal), ordinal);
}

HOOK_BODY(cuDevicePrimaryCtxReset, CUdevice ordinal)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return after(cuda.cuDevicePrimaryCtxReset(ordinal), ordinal);
}

HOOK_BODY(cuDevicePrimaryCtxReset_v2, CUdevice ordinal)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return after(cuda.cuDevicePrimaryCtxReset_v2(ordinal), ordinal);
}

/* The ways to make a context differ in their arguments only: call is the driver's. */
#define MAKE_CONTEXT(context, ordinal, call)                          \
	do {                                                          \
		_cleanup_charge_ struct charge charge_ = CHARGE_NULL; \
		struct device *device_;                               \
		CUresult r_;                                          \
                                                                      \
		if (!doors_attach_cuda())                             \
			return CUDA_ERROR_NOT_INITIALIZED;            \
		r_ = enter(ordinal, &device_);                        \
		if (r_ == CUDA_SUCCESS && device_)                    \
			r_ = contexts_reserve(device_, &charge_);     \
		if (r_ == CUDA_SUCCESS)                               \
			r_ = (call);                                  \
		if (r_ != CUDA_SUCCESS || !device_)                   \
			return r_;                                    \
		contexts_measure(device_, &charge_);                  \
		return contexts_keep(*(context), &charge_);           \
	} while (0)

HOOK_BODY(cuCtxCreate_v2, CUcontext *context, unsigned int flags, CUdevice ordinal)
{
	MAKE_CONTEXT(context, ordinal, cuda.cuCtxCreate_v2(context, flags, ordinal));
}

HOOK_BODY(cuCtxCreate_v3, CUcontext *context, CUexecAffinityParam *affinity, int affinity_count,
	unsigned int flags, CUdevice ordinal)
{
	MAKE_CONTEXT(context, ordinal,
		cuda.cuCtxCreate_v3(context, affinity, affinity_count, flags, ordinal));
}

HOOK_BODY(cuCtxCreate_v4, CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
	CUdevice ordinal)
{
	MAKE_CONTEXT(context, ordinal, cuda.cuCtxCreate_v4(context, parameters, flags, ordinal));
}

HOOK_BODY(cuCtxDestroy, CUcontext context)
{
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuCtxDestroy(context);
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		contexts_destroyed(context);
	return r;
}

HOOK_BODY(cuCtxDestroy_v2, CUcontext context)
{
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuCtxDestroy_v2(context);
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		contexts_destroyed(context);
	return r;
}
