/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: launches. A function that was launched before goes straight through the gate to the driver. */
#include "tenant/memory/code.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"

/* Of a grid, for telling a function's launches apart by size. */
static inline uint64_t blocks(unsigned int x, unsigned int y, unsigned int z)
{
	return (uint64_t)x * y * z;
}

/*
 * Whether nothing is to be done for the launch: its function was launched before, and nothing is metered.
 * Without a call, so that a hook that finds it so is a jump to the driver, with the arguments where they are.
 */
static inline bool is_free(CUfunction function)
{
	return code_is_marked(function) && gate_is_free();
}

/* A launch that something is to be done for. */
struct launch {
	bool is_first; /* of its function */
	struct code_launch code;
	struct gate_pass pass;
};

/* launch_end() after a success. stream is as gate_enter() has it. */
static CUresult launch_begin(
	CUfunction function, CUstream stream, uint64_t blocks, struct launch *ret_launch)
{
	CUresult r = CUDA_SUCCESS;

	gate_enter(stream, gate_key(function, blocks), &ret_launch->pass);
	ret_launch->is_first = !code_is_launched(function);
	if (UNLIKELY(ret_launch->is_first)) {
		r = code_launch_begin(function, stream, &ret_launch->code);
		if (r != CUDA_SUCCESS)
			gate_leave(&ret_launch->pass, r);
	}
	return r;
}

static void launch_end(struct launch *launch, CUresult r)
{
	if (UNLIKELY(launch->is_first))
		code_launch_end(&launch->code, r);
	gate_leave(&launch->pass, r);
}

/* What a launch on no stream means where the function's name ends in _ptsz. */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

static __attribute__((noinline)) CUresult launch_kernel(cuLaunchKernel_fn *real, CUstream meant,
	CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	CUstream stream, void **params, void **extra)
{
	struct launch launch;
	CUresult r = launch_begin(function, meant, blocks(grid_x, grid_y, grid_z), &launch);

	if (r == CUDA_SUCCESS) {
		r = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
			stream, params, extra);
		launch_end(&launch, r);
	}
	return r;
}

HOOK_BODY(cuLaunchKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	/* With nothing left to do after it, this is a jump, and the arguments stay where they are. */
	if (is_free(function))
		return cuda.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
			block_z, shared_bytes, stream, params, extra);
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return launch_kernel(cuda.cuLaunchKernel, stream, function, grid_x, grid_y, grid_z, block_x,
		block_y, block_z, shared_bytes, stream, params, extra);
}

HOOK_BODY(cuLaunchKernel_ptsz, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	if (is_free(function))
		return cuda.cuLaunchKernel_ptsz(function, grid_x, grid_y, grid_z, block_x, block_y,
			block_z, shared_bytes, stream, params, extra);
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return launch_kernel(cuda.cuLaunchKernel_ptsz, per_thread(stream), function, grid_x, grid_y,
		grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra);
}

static __attribute__((noinline)) CUresult launch_ex(cuLaunchKernelEx_fn *real, CUstream meant,
	const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	struct launch launch;
	CUresult r = launch_begin(function, meant,
		blocks(config->gridDimX, config->gridDimY, config->gridDimZ), &launch);

	if (r == CUDA_SUCCESS) {
		r = real(config, function, params, extra);
		launch_end(&launch, r);
	}
	return r;
}

HOOK_BODY(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **params,
	void **extra)
{
	if (is_free(function))
		return cuda.cuLaunchKernelEx(config, function, params, extra);
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!config)
		return cuda.cuLaunchKernelEx(config, function, params, extra);
	return launch_ex(cuda.cuLaunchKernelEx, config->hStream, config, function, params, extra);
}

HOOK_BODY(cuLaunchKernelEx_ptsz, const CUlaunchConfig *config, CUfunction function, void **params,
	void **extra)
{
	if (is_free(function))
		return cuda.cuLaunchKernelEx_ptsz(config, function, params, extra);
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!config)
		return cuda.cuLaunchKernelEx_ptsz(config, function, params, extra);
	return launch_ex(cuda.cuLaunchKernelEx_ptsz, per_thread(config->hStream), config, function,
		params, extra);
}

static __attribute__((noinline)) CUresult launch_cooperative(cuLaunchCooperativeKernel_fn *real,
	CUstream meant, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params)
{
	struct launch launch;
	CUresult r = launch_begin(function, meant, blocks(grid_x, grid_y, grid_z), &launch);

	if (r == CUDA_SUCCESS) {
		r = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
			stream, params);
		launch_end(&launch, r);
	}
	return r;
}

HOOK_BODY(cuLaunchCooperativeKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params)
{
	if (is_free(function))
		return cuda.cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x,
			block_y, block_z, shared_bytes, stream, params);
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return launch_cooperative(cuda.cuLaunchCooperativeKernel, stream, function, grid_x, grid_y,
		grid_z, block_x, block_y, block_z, shared_bytes, stream, params);
}

HOOK_BODY(cuLaunchCooperativeKernel_ptsz, CUfunction function, unsigned int grid_x,
	unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params)
{
	if (is_free(function))
		return cuda.cuLaunchCooperativeKernel_ptsz(function, grid_x, grid_y, grid_z,
			block_x, block_y, block_z, shared_bytes, stream, params);
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return launch_cooperative(cuda.cuLaunchCooperativeKernel_ptsz, per_thread(stream), function,
		grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params);
}
