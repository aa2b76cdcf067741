/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and kernels: their attributes, names and parameters. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/code/library.h"
#include "sim/cuda/model/code/module.h"

static CUresult get_attribute(int *value, CUfunction_attribute attribute, const void *handle)
{
	struct kernel *kernel = kernel_check(handle);
	int version = driver.board->compute_major * 10 + driver.board->compute_minor;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)kernel_frame_bytes(kernel);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = version;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = kernel->max_dynamic_shared > 0 ? kernel->max_dynamic_shared : 49152;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = -1;
		return CUDA_SUCCESS;
	default:
		if ((unsigned int)attribute >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*value = 0;
		return CUDA_SUCCESS;
	}
}

static CUresult set_attribute(const void *handle, CUfunction_attribute attribute, int value)
{
	struct kernel *kernel = kernel_check(handle);

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || (uint64_t)value > driver.board->shared_optin_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		kernel->max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return attribute > CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
				       attribute < CU_FUNC_ATTRIBUTE_MAX
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	}
}

ENTRY_CALL(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function),
	get_attribute(value, attribute, function))

ENTRY_CALL(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
	set_attribute(function, attribute, value))

ENTRY_BODY(cuKernelGetAttribute,
	(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),
	(value, attribute, kernel, device))
{
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return get_attribute(value, attribute, kernel);
}

ENTRY_BODY(cuKernelSetAttribute,
	(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),
	(attribute, value, kernel, device))
{
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return set_attribute(kernel, attribute, value);
}

ENTRY_CALL(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config),
	kernel_check(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)

ENTRY_CALL(cuFuncSetSharedMemConfig, (CUfunction function, CUsharedconfig config),
	kernel_check(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)

ENTRY_BODY(cuFuncGetModule, (CUmodule * module, CUfunction function), (module, function))
{
	struct kernel *kernel = kernel_check(function);
	struct module *mine = kernel ? kernel->module : NULL;
	struct context *context;
	CUresult result = CUDA_SUCCESS;

	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (mine->is_library) {
		result = context_current(&context);
		if (result != CUDA_SUCCESS)
			return result;
		LOCK_SCOPE(&driver.memory_lock);
		result = library_instantiate(mine, context, &mine);
	}
	if (result == CUDA_SUCCESS)
		*module = (CUmodule)mine;
	return result;
}

ENTRY_BODY(cuFuncGetName, (const char **name, CUfunction handle), (name, handle))
{
	struct kernel *kernel = kernel_check(handle);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuKernelGetName, (const char **name, CUkernel kernel),
	cuFuncGetName_body(name, (CUfunction)kernel))

ENTRY_BODY(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t *offset, size_t *size),
	(handle, index, offset, size))
{
	struct kernel *kernel = kernel_check(handle);

	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!kernel->image || index >= kernel->image->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->image->param[index].offset;
	if (size)
		*size = kernel->image->param[index].size;
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *size),
	cuFuncGetParamInfo_body((CUfunction)kernel, index, offset, size))

ENTRY_BODY(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device),
	(kernel, config, device))
{
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return kernel_check(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* A library's kernel is no function. */
ENTRY_BODY(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function), (state, function))
{
	struct kernel *kernel = kernel_check(function);

	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel || kernel_is_of_library(function))
		return CUDA_ERROR_INVALID_HANDLE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuFuncLoad, (CUfunction function),
	kernel_check(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)
