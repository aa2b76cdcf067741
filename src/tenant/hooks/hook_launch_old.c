/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: launches of CUDA 2 and 3, and of one kernel on several devices. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "tenant/memory/code.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"

HOOK_BODY(cuLaunch, CUfunction, function)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(NULL, gate_key(function, 0), &pass);
	if (code_is_launched(function)) {
		r = cuda.cuLaunch(function);
		gate_leave(&pass, r);
		return r;
	}
	r = code_launch_begin(function, NULL, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunch(function);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

HOOK_BODY(cuLaunchGrid, CUfunction, function, int, grid_width, int, grid_height)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(NULL, gate_key(function, (uint64_t)grid_width * (uint64_t)grid_height), &pass);
	if (code_is_launched(function)) {
		r = cuda.cuLaunchGrid(function, grid_width, grid_height);
		gate_leave(&pass, r);
		return r;
	}
	r = code_launch_begin(function, NULL, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunchGrid(function, grid_width, grid_height);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

HOOK_BODY(cuLaunchGridAsync, CUfunction, function, int, grid_width, int, grid_height, CUstream,
	stream)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream, gate_key(function, (uint64_t)grid_width * (uint64_t)grid_height), &pass);
	if (code_is_launched(function)) {
		r = cuda.cuLaunchGridAsync(function, grid_width, grid_height, stream);
		gate_leave(&pass, r);
		return r;
	}
	r = code_launch_begin(function, stream, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunchGridAsync(function, grid_width, grid_height, stream);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

/* One of several launches that begin together. */
struct one {
	struct code_launch launch;
	struct gate_pass pass;
};

/* In the context of its stream; a stream without one is the driver's to refuse. */
static CUresult begin_one(const CUDA_LAUNCH_PARAMS *params, struct one *ret_one)
{
	CUcontext context;
	CUresult r;

	ret_one->launch = (struct code_launch){.is_captured = true, .local = CHARGE_NULL};
	ret_one->pass = (struct gate_pass){.state = NULL};
	if (!cuda.cuStreamGetCtx ||
		cuda.cuStreamGetCtx(params->hStream, &context) != CUDA_SUCCESS ||
		cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	r = code_launch_begin(params->function, params->hStream, &ret_one->launch);
	if (r == CUDA_SUCCESS)
		gate_enter(params->hStream,
			gate_key(params->function,
				(uint64_t)params->gridDimX * params->gridDimY * params->gridDimZ),
			&ret_one->pass);
	cuda.cuCtxPopCurrent_v2(&context);
	return r;
}

static void end_one(const CUDA_LAUNCH_PARAMS *params, struct one *one, CUresult r)
{
	CUcontext context;
	bool is_there = cuda.cuStreamGetCtx(params->hStream, &context) == CUDA_SUCCESS &&
			cuda.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;

	if (is_there && one->launch.function)
		code_launch_end(&one->launch, r);
	gate_leave(&one->pass, r);
	if (is_there)
		cuda.cuCtxPopCurrent_v2(&context);
}

HOOK_BODY(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *, launches, unsigned int, count,
	unsigned int, flags)
{
	_cleanup_free_ struct one *begun = NULL;
	unsigned int done = 0;
	CUresult r = CUDA_SUCCESS;

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
