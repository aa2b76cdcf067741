/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of CUDA 2: a function is told its block and its parameters, then it is launched. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/context/submit.h"

#define PARAMS_MAX 4096

/* What a function was told. Like the interface itself it is for one thread at a time. */
struct kernel_told {
	unsigned int block[3];
	unsigned int shared_bytes;
	size_t param_bytes;
	char params[PARAMS_MAX];
};

static CUresult find(CUfunction function, struct kernel_told **ret_told)
{
	struct kernel *kernel = kernel_check(function);

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!kernel->told)
		kernel->told = calloc(1, sizeof(*kernel->told));
	if (!kernel->told)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_told = kernel->told;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z), (function, x, y, z))
{
	struct kernel_told *told;
	CUresult result = find(function, &told);

	if (result != CUDA_SUCCESS)
		return result;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	told->block[0] = (unsigned int)x;
	told->block[1] = (unsigned int)y;
	told->block[2] = (unsigned int)z;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuFuncSetSharedSize, (CUfunction function, unsigned int bytes), (function, bytes))
{
	struct kernel_told *told;
	CUresult result = find(function, &told);

	if (result == CUDA_SUCCESS)
		told->shared_bytes = bytes;
	return result;
}

ENTRY_BODY(cuParamSetSize, (CUfunction function, unsigned int bytes), (function, bytes))
{
	struct kernel_told *told;
	CUresult result = find(function, &told);

	if (result != CUDA_SUCCESS)
		return result;
	if (bytes > PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	told->param_bytes = bytes;
	return CUDA_SUCCESS;
}

static CUresult set_param(CUfunction function, int offset, const void *value, unsigned int bytes)
{
	struct kernel_told *told;
	CUresult result = find(function, &told);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || offset < 0 || bytes > PARAMS_MAX || (unsigned int)offset > PARAMS_MAX - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(told->params + offset, value, bytes);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuParamSeti, (CUfunction function, int offset, unsigned int value),
	(function, offset, value))
{
	return set_param(function, offset, &value, sizeof(value));
}

ENTRY_BODY(cuParamSetf, (CUfunction function, int offset, float value), (function, offset, value))
{
	return set_param(function, offset, &value, sizeof(value));
}

ENTRY_BODY(cuParamSetv, (CUfunction function, int offset, void *value, unsigned int bytes),
	(function, offset, value, bytes))
{
	return set_param(function, offset, value, bytes);
}

ENTRY_BODY(cuParamSetTexRef, (CUfunction function, int unit, CUtexref reference),
	(function, unit, reference))
{
	struct kernel_told *told;

	return find(function, &told);
}

static CUresult launch(CUfunction function, int width, int height, CUstream stream)
{
	struct kernel_told *told;
	CUresult result = find(function, &told);

	if (result != CUDA_SUCCESS)
		return result;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, told->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&told->param_bytes, CU_LAUNCH_PARAM_END};
	struct launch_size size = {{(unsigned int)width, (unsigned int)height, 1},
		{told->block[0], told->block[1], told->block[2]}, told->shared_bytes};

	return submit_kernel(false, function, &size, stream, NULL, extra);
}

ENTRY_BODY(cuLaunch, (CUfunction function), (function))
{
	return launch(function, 1, 1, NULL);
}

ENTRY_BODY(cuLaunchGrid, (CUfunction function, int width, int height), (function, width, height))
{
	return launch(function, width, height, NULL);
}

ENTRY_BODY(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
	(function, width, height, stream))
{
	return launch(function, width, height, stream);
}
