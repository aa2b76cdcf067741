/* SPDX-License-Identifier: Apache-2.0 */
/* Modules. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/module.h"

static CUresult load(CUmodule *ret_module, const void *data)
{
	struct context *context;
	struct image *image;
	struct module *module;
	CUresult result = context_current(&context);
	int r;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_module || !data)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(data, &image);
	if (r != 0)
		return module_read_error(r);
	LOCK_SCOPE(&driver.memory_lock);
	result = module_new(context, image, &module);
	if (result != CUDA_SUCCESS)
		image_free(image);
	else
		*ret_module = (CUmodule)module;
	return result;
}

ENTRY_BODY(cuModuleLoad, (CUmodule * module, const char *path), (module, path))
{
	char *data;
	size_t bytes;
	CUresult result = module_read_file(path, &data, &bytes);

	if (result != CUDA_SUCCESS)
		return result;
	result = load(module, data);
	free(data);
	return result;
}

ENTRY_CALL(cuModuleLoadData, (CUmodule * module, const void *image), load(module, image))

ENTRY_CALL(cuModuleLoadDataEx,
	(CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
		void **values),
	load(module, image))

ENTRY_CALL(cuModuleLoadFatBinary, (CUmodule * module, const void *image), load(module, image))

ENTRY_CURRENT(cuModuleUnload, (CUmodule handle), (handle))
{
	struct module *module;

	LOCK_SCOPE(&driver.memory_lock);
	module = module_check(handle, false);
	if (module)
		module_end(module);
	return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_CALL_CURRENT(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
	module_get_kernel(module, false, name, (void **)function))

ENTRY_CALL(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned int most, CUmodule module),
	module_list_kernels(module, false, (void **)functions, most))

ENTRY_CALL(cuModuleGetFunctionCount, (unsigned int *count, CUmodule module),
	module_count_kernels(module, false, count))

ENTRY_BODY(cuModuleGetGlobal_v2,
	(CUdeviceptr * dptr, size_t *size, CUmodule handle, const char *name),
	(dptr, size, handle, name))
{
	struct module *module;

	if (!name || (!dptr && !size))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	module = module_check(handle, false);
	return module ? module_find_global(module, name, false, dptr, size)
		      : CUDA_ERROR_INVALID_HANDLE;
}

/* No variable has an address of 32 bits. */
ENTRY_CALL(cuModuleGetGlobal,
	(CUdeviceptr_v1 * dptr, unsigned int *size, CUmodule module, const char *name),
	CUDA_ERROR_INVALID_CONTEXT)

ENTRY_BODY(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), (mode))
{
	const char *wanted = getenv("CUDA_MODULE_LOADING");

	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = wanted && strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING
						       : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}
