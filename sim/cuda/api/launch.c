/* SPDX-License-Identifier: Apache-2.0 */
/* Launches. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"

ENTRY_FORMS(cuLaunchKernel, _ptsz,
	(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		unsigned int block_x, unsigned int block_y, unsigned int block_z,
		unsigned int shared_bytes, CUstream stream, void **params, void **extra),
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
		extra))
{
	struct launch_size size = {
		{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};

	return submit_kernel(is_thread, function, &size, stream, params, extra);
}

ENTRY_FORMS(cuLaunchKernelEx, _ptsz,
	(const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
	(config, function, params, extra))
{
	struct launch_size size;

	if (!config || (config->numAttrs > 0 && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	size = (struct launch_size){{config->gridDimX, config->gridDimY, config->gridDimZ},
		{config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes};
	return submit_kernel(is_thread, function, &size, config->hStream, params, extra);
}

ENTRY_FORMS(cuLaunchCooperativeKernel, _ptsz,
	(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		unsigned int block_x, unsigned int block_y, unsigned int block_z,
		unsigned int shared_bytes, CUstream stream, void **params),
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params))
{
	struct launch_size size = {
		{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};

	return submit_kernel(is_thread, function, &size, stream, params, NULL);
}

/* One launch a device; the real driver refuses them all where one is wrong. */
ENTRY_BODY(cuLaunchCooperativeKernelMultiDevice,
	(CUDA_LAUNCH_PARAMS * list, unsigned int count, unsigned int flags), (list, count, flags))
{
	enum { FLAGS = 3 }; /* without synchronization before, after */
	CUresult result = CUDA_SUCCESS;

	if (!list || count == 0 || (flags & ~(unsigned int)FLAGS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		if (!list[i].hStream || list[i].hStream == CU_STREAM_LEGACY ||
			list[i].hStream == CU_STREAM_PER_THREAD)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
		const CUDA_LAUNCH_PARAMS *one = &list[i];
		struct launch_size size = {{one->gridDimX, one->gridDimY, one->gridDimZ},
			{one->blockDimX, one->blockDimY, one->blockDimZ}, one->sharedMemBytes};

		result = submit_kernel(
			false, one->function, &size, one->hStream, one->kernelParams, NULL);
	}
	return result;
}
