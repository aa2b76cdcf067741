/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: launches. A function that was launched before goes straight through the gate to the driver. */
#include "shim/code.h"
#include "shim/doors.h"
#include "shim/gate.h"

/* Of a grid, for telling a function's launches apart by size. */
static inline uint64_t blocks(unsigned int x, unsigned int y, unsigned int z)
{
	return (uint64_t)x * y * z;
}

HOOK_BODY(cuLaunchKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream, gate_key(function, blocks(grid_x, grid_y, grid_z)), &pass);
	if (LIKELY(code_is_launched(function))) {
		r = cuda.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
			shared_bytes, stream, params, extra);
		gate_leave(&pass, r);
		return r;
	}
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = code_launch_begin(function, stream, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
			shared_bytes, stream, params, extra);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

HOOK_BODY(cuLaunchKernel_ptsz, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream ? stream : CU_STREAM_PER_THREAD,
		gate_key(function, blocks(grid_x, grid_y, grid_z)), &pass);
	if (LIKELY(code_is_launched(function))) {
		r = cuda.cuLaunchKernel_ptsz(function, grid_x, grid_y, grid_z, block_x, block_y,
			block_z, shared_bytes, stream, params, extra);
		gate_leave(&pass, r);
		return r;
	}
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = code_launch_begin(function, stream ? stream : CU_STREAM_PER_THREAD, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunchKernel_ptsz(function, grid_x, grid_y, grid_z, block_x, block_y,
			block_z, shared_bytes, stream, params, extra);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

/* What the two forms of cuLaunchKernelEx() have in common; stream_0 is what no stream means. */
static inline CUresult launch_ex(cuLaunchKernelEx_fn *real, CUstream stream_0,
	const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	CUstream stream = config->hStream ? config->hStream : stream_0;
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream,
		gate_key(function, blocks(config->gridDimX, config->gridDimY, config->gridDimZ)),
		&pass);
	if (LIKELY(code_is_launched(function))) {
		r = real(config, function, params, extra);
		gate_leave(&pass, r);
		return r;
	}
	r = code_launch_begin(function, stream, &launch);
	if (r == CUDA_SUCCESS) {
		r = real(config, function, params, extra);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

HOOK_BODY(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **params,
	void **extra)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!config)
		return cuda.cuLaunchKernelEx(config, function, params, extra);
	return launch_ex(cuda.cuLaunchKernelEx, NULL, config, function, params, extra);
}

HOOK_BODY(cuLaunchKernelEx_ptsz, const CUlaunchConfig *config, CUfunction function, void **params,
	void **extra)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!config)
		return cuda.cuLaunchKernelEx_ptsz(config, function, params, extra);
	return launch_ex(
		cuda.cuLaunchKernelEx_ptsz, CU_STREAM_PER_THREAD, config, function, params, extra);
}

HOOK_BODY(cuLaunchCooperativeKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream, gate_key(function, blocks(grid_x, grid_y, grid_z)), &pass);
	if (LIKELY(code_is_launched(function))) {
		r = cuda.cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x,
			block_y, block_z, shared_bytes, stream, params);
		gate_leave(&pass, r);
		return r;
	}
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = code_launch_begin(function, stream, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x,
			block_y, block_z, shared_bytes, stream, params);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}

HOOK_BODY(cuLaunchCooperativeKernel_ptsz, CUfunction function, unsigned int grid_x,
	unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params)
{
	struct code_launch launch;
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream ? stream : CU_STREAM_PER_THREAD,
		gate_key(function, blocks(grid_x, grid_y, grid_z)), &pass);
	if (LIKELY(code_is_launched(function))) {
		r = cuda.cuLaunchCooperativeKernel_ptsz(function, grid_x, grid_y, grid_z, block_x,
			block_y, block_z, shared_bytes, stream, params);
		gate_leave(&pass, r);
		return r;
	}
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = code_launch_begin(function, stream ? stream : CU_STREAM_PER_THREAD, &launch);
	if (r == CUDA_SUCCESS) {
		r = cuda.cuLaunchCooperativeKernel_ptsz(function, grid_x, grid_y, grid_z, block_x,
			block_y, block_z, shared_bytes, stream, params);
		code_launch_end(&launch, r);
	}
	gate_leave(&pass, r);
	return r;
}
