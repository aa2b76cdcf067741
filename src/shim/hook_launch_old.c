/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: launches of CUDA 2 and 3, and of one kernel on several devices. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "shim/code.h"
#include "shim/doors.h"

HOOK_BODY(cuLaunch, CUfunction function)
{
	struct code_launch launch;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (code_is_launched(function))
		return cuda.cuLaunch(function);
	r = code_launch_begin(function, NULL, &launch);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuLaunch(function);
	code_launch_end(&launch, r);
	return r;
}

HOOK_BODY(cuLaunchGrid, CUfunction function, int grid_width, int grid_height)
{
	struct code_launch launch;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (code_is_launched(function))
		return cuda.cuLaunchGrid(function, grid_width, grid_height);
	r = code_launch_begin(function, NULL, &launch);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuLaunchGrid(function, grid_width, grid_height);
	code_launch_end(&launch, r);
	return r;
}

HOOK_BODY(cuLaunchGridAsync, CUfunction function, int grid_width, int grid_height, CUstream stream)
{
	struct code_launch launch;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (code_is_launched(function))
		return cuda.cuLaunchGridAsync(function, grid_width, grid_height, stream);
	r = code_launch_begin(function, stream, &launch);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuLaunchGridAsync(function, grid_width, grid_height, stream);
	code_launch_end(&launch, r);
	return r;
}

/* One of the launches, in the context of its stream; a stream without one is the driver's to refuse. */
static CUresult begin_one(const CUDA_LAUNCH_PARAMS *params, struct code_launch *ret_launch)
{
	CUcontext context;
	CUresult r;

	*ret_launch = (struct code_launch){.is_captured = true, .local = CHARGE_NULL};
	if (!cuda.cuStreamGetCtx ||
		cuda.cuStreamGetCtx(params->hStream, &context) != CUDA_SUCCESS ||
		cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	r = code_launch_begin(params->function, params->hStream, ret_launch);
	cuda.cuCtxPopCurrent_v2(&context);
	return r;
}

static void end_one(const CUDA_LAUNCH_PARAMS *params, struct code_launch *launch, CUresult r)
{
	CUcontext context;

	if (!launch->function || cuda.cuStreamGetCtx(params->hStream, &context) != CUDA_SUCCESS ||
		cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return;
	code_launch_end(launch, r);
	cuda.cuCtxPopCurrent_v2(&context);
}

HOOK_BODY(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *launches, unsigned int count,
	unsigned int flags)
{
	_cleanup_free_ struct code_launch *begun = NULL;
	unsigned int done = 0;
	CUresult r = CUDA_SUCCESS;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!launches || count == 0 || count > STATE_ORDINALS)
		return cuda.cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
	begun = calloc(count, sizeof(*begun));
	if (!begun)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (done < count && r == CUDA_SUCCESS) {
		r = begin_one(&launches[done], &begun[done]);
		if (r == CUDA_SUCCESS)
			done++;
	}
	if (r == CUDA_SUCCESS)
		r = cuda.cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
	for (unsigned int i = 0; i < done; i++)
		end_one(&launches[i], &begun[i], r);
	return r;
}
