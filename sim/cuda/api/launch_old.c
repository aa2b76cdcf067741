/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of CUDA 2: a function is told its block and its parameters, then it is launched. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/context/submit.h"

#define PARAMS_MAX 4096

/* The settings of a function. Like the interface itself they are for one thread at a time. */
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

/* An entry whose body gets in front what its function was told. */
#define TOLD(symbol, params, args)                                                               \
	static CUresult symbol##_told(struct kernel_told *told, ENTRY_UNPACK params);            \
	ENTRY_BODY(symbol, params, args)                                                         \
	{                                                                                        \
		struct kernel_told *told;                                                        \
		CUresult result = find(function, &told);                                         \
                                                                                                 \
		return result == CUDA_SUCCESS ? symbol##_told(told, ENTRY_UNPACK args) : result; \
	}                                                                                        \
	static CUresult symbol##_told(struct kernel_told *told, ENTRY_UNPACK params)

TOLD(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z), (function, x, y, z))
{
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	told->block[0] = (unsigned int)x;
	told->block[1] = (unsigned int)y;
	told->block[2] = (unsigned int)z;
	return CUDA_SUCCESS;
}

TOLD(cuFuncSetSharedSize, (CUfunction function, unsigned int bytes), (function, bytes))
{
	told->shared_bytes = bytes;
	return CUDA_SUCCESS;
}

TOLD(cuParamSetSize, (CUfunction function, unsigned int bytes), (function, bytes))
{
	if (bytes > PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	told->param_bytes = bytes;
	return CUDA_SUCCESS;
}

TOLD(cuParamSetv, (CUfunction function, int offset, void *value, unsigned int bytes),
	(function, offset, value, bytes))
{
	if (!value || offset < 0 || bytes > PARAMS_MAX || (unsigned int)offset > PARAMS_MAX - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(told->params + offset, value, bytes);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuParamSeti, (CUfunction function, int offset, unsigned int value),
	cuParamSetv_body(function, offset, &value, sizeof(value)))
ENTRY_CALL(cuParamSetf, (CUfunction function, int offset, float value),
	cuParamSetv_body(function, offset, &value, sizeof(value)))

TOLD(cuParamSetTexRef, (CUfunction function, int unit, CUtexref reference),
	(function, unit, reference))
{
	return CUDA_SUCCESS;
}

TOLD(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
	(function, width, height, stream))
{
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, told->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&told->param_bytes, CU_LAUNCH_PARAM_END};
	struct launch_size size = {{(unsigned int)width, (unsigned int)height, 1},
		{told->block[0], told->block[1], told->block[2]}, told->shared_bytes};

	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	return submit_kernel(false, function, &size, stream, NULL, extra);
}

ENTRY_CALL(cuLaunchGrid, (CUfunction function, int width, int height),
	cuLaunchGridAsync_body(function, width, height, NULL))
ENTRY_CALL(cuLaunch, (CUfunction function), cuLaunchGridAsync_body(function, 1, 1, NULL))
