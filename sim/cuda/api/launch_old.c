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
	struct launch_size size;
	size_t param_bytes;
	char params[PARAMS_MAX];
};

/* NULL where there is no such function. */
static struct kernel_told *find(CUfunction function)
{
	struct kernel *kernel = kernel_check(function);

	if (kernel && !kernel->told)
		kernel->told = calloc(1, sizeof(*kernel->told));
	return kernel ? kernel->told : NULL;
}

/* Rows: a call, its parameters, what must hold of them, and what is done then. */
#define TELL(symbol, params, args, is_right, done)                                      \
	ENTRY_BODY(symbol, params, args)                                                \
	{                                                                               \
		struct kernel_told *told = find(function);                              \
		CUresult result = (is_right) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; \
                                                                                        \
		if (!told)                                                              \
			return CUDA_ERROR_INVALID_HANDLE;                               \
		if (result == CUDA_SUCCESS)                                             \
			done;                                                           \
		return result;                                                          \
	}

TELL(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z), (function, x, y, z),
	x > 0 && y > 0 && z > 0,
	memcpy(told->size.block, (int[]){x, y, z}, sizeof(told->size.block)))
TELL(cuFuncSetSharedSize, (CUfunction function, unsigned int bytes), (function, bytes), true,
	told->size.shared_bytes = bytes)
TELL(cuParamSetSize, (CUfunction function, unsigned int bytes), (function, bytes),
	bytes <= PARAMS_MAX, told->param_bytes = bytes)
TELL(cuParamSetv, (CUfunction function, int offset, void *value, unsigned int bytes),
	(function, offset, value, bytes),
	offset >= 0 && (size_t)offset + bytes <= PARAMS_MAX && value,
	memcpy(told->params + offset, value, bytes))
ENTRY_CALL(cuParamSeti, (CUfunction function, int offset, unsigned int value),
	cuParamSetv_body(function, offset, &value, sizeof(value)))
ENTRY_CALL(cuParamSetf, (CUfunction function, int offset, float value),
	cuParamSetv_body(function, offset, &value, sizeof(value)))
TELL(cuParamSetTexRef, (CUfunction function, int unit, CUtexref reference),
	(function, unit, reference), true, (void)0)

static CUresult launch(
	CUfunction function, int width, int height, CUstream stream, struct kernel_told *told)
{
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, told->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&told->param_bytes, CU_LAUNCH_PARAM_END};
	struct launch_size size = told->size;

	memcpy(size.grid, (int[]){width, height, 1}, sizeof(size.grid));
	return submit_kernel(false, function, &size, stream, NULL, extra);
}

TELL(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
	(function, width, height, stream), width > 0 && height > 0,
	result = launch(function, width, height, stream, told))
ENTRY_CALL(cuLaunchGrid, (CUfunction function, int width, int height),
	cuLaunchGridAsync_body(function, width, height, NULL))
ENTRY_CALL(cuLaunch, (CUfunction function), cuLaunchGridAsync_body(function, 1, 1, NULL))
