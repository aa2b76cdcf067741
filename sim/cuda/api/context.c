/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts as the program makes, ends and stacks them. */
#include "sim/cuda/api/entry.h"

static CUresult create(
	CUcontext *ret_context, unsigned int flags, CUdevice ordinal, unsigned int api_version)
{
	struct device *device = driver_device(ordinal);
	struct context *context;
	CUresult result;

	if (!ret_context || !context_are_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	context = context_make(device, false);
	result = context ? context_activate(context, flags) : CUDA_ERROR_OUT_OF_MEMORY;
	if (context && result != CUDA_SUCCESS)
		context_spare(context);
	if (result == CUDA_SUCCESS) {
		context->api_version = api_version;
		if (!context_push(context)) {
			context_end(context);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			*ret_context = (CUcontext)context;
		}
	}
	return result;
}

ENTRY_CALL(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice ordinal),
	create(context, flags, ordinal, 3010))

ENTRY_CALL(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice ordinal),
	create(context, flags, ordinal, 3020))

ENTRY_BODY(cuCtxCreate_v3,
	(CUcontext * context, CUexecAffinityParam *params, int count, unsigned int flags,
		CUdevice ordinal),
	(context, params, count, flags, ordinal))
{
	if (count < 0 || (count > 0 && !params))
		return CUDA_ERROR_INVALID_VALUE;
	/* Shares of multiprocessors exist under MPS only, which is not simulated. */
	if (count > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(context, flags, ordinal, 3020);
}

ENTRY_BODY(cuCtxCreate_v4,
	(CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice ordinal),
	(context, params, flags, ordinal))
{
	if (params && (params->numExecAffinityParams > 0 || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(context, flags, ordinal, 3020);
}

/* Under memory_lock. A kernel's fault is told, and the work is done all the same, which is estimated. */
static CUresult end(struct context *context)
{
	CUresult fault = context_fault(context);

	if (context->is_primary || context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_end(context);
	if (context_top() == context)
		context_pop();
	return fault;
}

ENTRY_BODY(cuCtxDestroy, (CUcontext handle), (handle))
{
	struct context *context;
	CUresult result;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	result = context_check_itself(handle, &context);
	return result == CUDA_SUCCESS ? end(context) : result;
}

ENTRY_CALL(cuCtxDestroy_v2, (CUcontext context), cuCtxDestroy_body(context))

/* Uses beyond that of its creator are counted; the last one that goes destroys the context. */
ENTRY_BODY(cuCtxAttach, (CUcontext * context, unsigned int flags), (context, flags))
{
	struct context *current;
	CUresult result = context_check_itself(NULL, &current);

	if (!context || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	LOCK_SCOPE(&driver.memory_lock);
	current->attached++;
	*context = (CUcontext)current;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxDetach, (CUcontext handle), (handle))
{
	struct context *context;
	CUresult result;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_check_itself(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Only where it is current. */
	if (context_top() != context)
		return CUDA_ERROR_INVALID_CONTEXT;
	LOCK_SCOPE(&driver.memory_lock);
	if (context->attached == 0)
		return end(context);
	context->attached--;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxGetCurrent, (CUcontext * context), (context))
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = (CUcontext)context_top();
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxSetCurrent, (CUcontext handle), (handle))
{
	struct context *context;
	CUresult result;

	if (!handle) {
		context_pop();
		return CUDA_SUCCESS;
	}
	result = context_check_itself(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	return context_set_top(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY_BODY(cuCtxPushCurrent, (CUcontext handle), (handle))
{
	struct context *context;
	CUresult result;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_check_itself(handle, &context);
	if (result == CUDA_SUCCESS && !context_push(context))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

ENTRY_BODY(cuCtxPopCurrent, (CUcontext * ret_context), (ret_context))
{
	struct context *context;

	context = context_pop();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ret_context)
		*ret_context = (CUcontext)context;
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuCtxPushCurrent_v2, (CUcontext context), cuCtxPushCurrent_body(context))

ENTRY_CALL(cuCtxPopCurrent_v2, (CUcontext * context), cuCtxPopCurrent_body(context))
