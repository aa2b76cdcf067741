/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the beginning, and contexts. */
#include "tenant/memory/contexts.h"
#include "tenant/hooks/hook.h"

HOOK_BODY(cuInit, unsigned int, flags)
{
	CUresult r = cuda.cuInit(flags);

	/* A process of the slice is to be seen in it from its first use of CUDA on. */
	if (r == CUDA_SUCCESS)
		state_enter();
	return r;
}

HOOK_BODY(cuDevicePrimaryCtxRetain, CUcontext *, context, CUdevice, ordinal)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	struct device *device;
	CUresult r = contexts_enter(ordinal, &device);

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

HOOK_FORMS(cuDevicePrimaryCtxRelease, _v2, CUdevice, ordinal)
{
	CHARGE_SCOPE();

	return after(real(ordinal), ordinal);
}

HOOK_FORMS(cuDevicePrimaryCtxReset, _v2, CUdevice, ordinal)
{
	CHARGE_SCOPE();

	return after(real(ordinal), ordinal);
}

/* What the ways to make a context have in common, before the driver's call and after it. */
static CUresult before_making(const CUcontext *context, CUdevice ordinal, struct charge *ret_charge)
{
	struct device *device;
	CUresult r;

	if (!context) /* the driver refuses it */
		return CUDA_SUCCESS;
	r = contexts_enter(ordinal, &device);
	return r == CUDA_SUCCESS && device ? contexts_reserve(device, ret_charge) : r;
}

static CUresult after_making(CUresult r, const CUcontext *context, struct charge *charge)
{
	if (r != CUDA_SUCCESS || !charge->device)
		return r;
	contexts_measure(charge->device, charge);
	return contexts_keep(*context, charge);
}

HOOK_FORMS(cuCtxCreate, _v2, CUcontext *, context, unsigned int, flags, CUdevice, ordinal)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r = before_making(context, ordinal, &charge);

	if (r == CUDA_SUCCESS)
		r = real(context, flags, ordinal);
	return after_making(r, context, &charge);
}

HOOK_BODY(cuCtxCreate_v3, CUcontext *, context, CUexecAffinityParam *, affinity, int,
	affinity_count, unsigned int, flags, CUdevice, ordinal)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r = before_making(context, ordinal, &charge);

	if (r == CUDA_SUCCESS)
		r = cuda.cuCtxCreate_v3(context, affinity, affinity_count, flags, ordinal);
	return after_making(r, context, &charge);
}

HOOK_BODY(cuCtxCreate_v4, CUcontext *, context, CUctxCreateParams *, parameters, unsigned int,
	flags, CUdevice, ordinal)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r = before_making(context, ordinal, &charge);

	if (r == CUDA_SUCCESS)
		r = cuda.cuCtxCreate_v4(context, parameters, flags, ordinal);
	return after_making(r, context, &charge);
}

/* After a call that may have destroyed a context that the program made. */
static CUresult after_destroying(CUresult r, CUcontext context)
{
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		contexts_destroyed(context);
	return r;
}

HOOK_FORMS(cuCtxDestroy, _v2, CUcontext, context)
{
	CHARGE_SCOPE();

	return after_destroying(real(context), context);
}

/* A context can be detached only while it is current, and where it has ended it is not any longer. */
HOOK_BODY(cuCtxDetach, CUcontext, context)
{
	CUcontext current = NULL;
	CUresult r;
	CHARGE_SCOPE();

	r = cuda.cuCtxDetach(context);
	if (r == CUDA_SUCCESS && cuda.cuCtxGetCurrent &&
		cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != context)
		r = after_destroying(r, context);
	return r;
}
