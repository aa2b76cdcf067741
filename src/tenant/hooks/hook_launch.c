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

HOOK_FORMS_UNLESS(cuLaunchKernel, _ptsz, is_free(function), CUfunction, function, unsigned int,
	grid_x, unsigned int, grid_y, unsigned int, grid_z, unsigned int, block_x, unsigned int,
	block_y, unsigned int, block_z, unsigned int, shared_bytes, CUstream, stream, void **,
	params, void **, extra)
{
	struct launch launch;
	CUresult r = launch_begin(function, stream, blocks(grid_x, grid_y, grid_z), &launch);

	if (r == CUDA_SUCCESS) {
		r = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
			stream, params, extra);
		launch_end(&launch, r);
	}
	return r;
}

HOOK_FORMS_UNLESS(cuLaunchKernelEx, _ptsz, is_free(function), const CUlaunchConfig *, config,
	CUfunction, function, void **, params, void **, extra)
{
	struct launch launch;
	CUresult r;

	if (!config)
		return real(config, function, params, extra);
	r = launch_begin(function, hook_meant(config->hStream, null_stream),
		blocks(config->gridDimX, config->gridDimY, config->gridDimZ), &launch);
	if (r == CUDA_SUCCESS) {
		r = real(config, function, params, extra);
		launch_end(&launch, r);
	}
	return r;
}

HOOK_FORMS_UNLESS(cuLaunchCooperativeKernel, _ptsz, is_free(function), CUfunction, function,
	unsigned int, grid_x, unsigned int, grid_y, unsigned int, grid_z, unsigned int, block_x,
	unsigned int, block_y, unsigned int, block_z, unsigned int, shared_bytes, CUstream, stream,
	void **, params)
{
	struct launch launch;
	CUresult r = launch_begin(function, stream, blocks(grid_x, grid_y, grid_z), &launch);

	if (r == CUDA_SUCCESS) {
		r = real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
			stream, params);
		launch_end(&launch, r);
	}
	return r;
}
