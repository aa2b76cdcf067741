/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries. */
#include <stdlib.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/code/library.h"
#include "sim/cuda/model/code/module.h"

static CUresult new_library(struct image *image, struct module **ret_library)
{
	LOCK_SCOPE(&driver.memory_lock);
	return library_new(image, ret_library);
}

static CUresult load_library(CUlibrary *ret_library, const void *data)
{
	struct module *library;
	struct image *image;
	CUresult result;
	int r;

	if (!ret_library || !data)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(data, &image);
	if (r != 0)
		return module_read_error(r);
	result = new_library(image, &library);
	if (result != CUDA_SUCCESS)
		image_free(image);
	else
		*ret_library = (CUlibrary)library;
	return result;
}

ENTRY_CALL(cuLibraryLoadData,
	(CUlibrary * library, const void *code, CUjit_option *options, void **values,
		unsigned int count, CUlibraryOption *library_options, void **library_values,
		unsigned int library_count),
	load_library(library, code))

ENTRY_BODY(cuLibraryLoadFromFile,
	(CUlibrary * library, const char *path, CUjit_option *options, void **values,
		unsigned int count, CUlibraryOption *library_options, void **library_values,
		unsigned int library_count),
	(library, path, options, values, count, library_options, library_values, library_count))
{
	char *data;
	size_t bytes;
	CUresult result = module_read_file(path, &data, &bytes);

	if (result != CUDA_SUCCESS)
		return result;
	result = load_library(library, data);
	free(data);
	return result;
}

/* The same in the current context. */
static CUresult instantiate(struct module *library, struct module **ret_module)
{
	struct context *context;
	CUresult result = context_current(&context);

	return result == CUDA_SUCCESS ? library_instantiate(library, context, ret_module) : result;
}

ENTRY_BODY(cuLibraryUnload, (CUlibrary handle), (handle))
{
	struct module *library;

	LOCK_SCOPE(&driver.memory_lock);
	library = module_check(handle, true);
	if (library)
		library_end(library);
	return library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_CALL(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
	module_get_kernel(library, true, name, (void **)kernel))

ENTRY_CALL(cuLibraryGetKernelCount, (unsigned int *count, CUlibrary library),
	module_count_kernels(library, true, count))

ENTRY_BODY(cuLibraryGetModule, (CUmodule * ret_module, CUlibrary handle), (ret_module, handle))
{
	struct module *library, *module;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	library = module_check(handle, true);
	if (library)
		result = instantiate(library, &module);
	if (result == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	return result;
}

static CUresult get_global(
	CUdeviceptr *dptr, size_t *size, CUlibrary handle, const char *name, bool is_managed_only)
{
	struct module *library, *module;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (!name || (!dptr && !size))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	library = module_check(handle, true);
	if (library)
		result = instantiate(library, &module);
	if (result == CUDA_SUCCESS)
		result = module_find_global(module, name, is_managed_only, dptr, size);
	return result;
}

ENTRY_CALL(cuLibraryGetGlobal,
	(CUdeviceptr * dptr, size_t *size, CUlibrary library, const char *name),
	get_global(dptr, size, library, name, false))

ENTRY_CALL(cuLibraryGetManaged,
	(CUdeviceptr * dptr, size_t *size, CUlibrary library, const char *name),
	get_global(dptr, size, library, name, true))

/* Functions shared between host and device are found by name and are not simulated. */
ENTRY_BODY(cuLibraryGetUnifiedFunction, (void **function, CUlibrary library, const char *name),
	(function, library, name))
{
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	return module_check(library, true) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_CALL(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned int most, CUlibrary library),
	module_list_kernels(library, true, (void **)kernels, most))

static CUresult instantiate_kernel(const struct kernel *kernel, struct module **ret_module)
{
	LOCK_SCOPE(&driver.memory_lock);
	return instantiate(kernel->module, ret_module);
}

/* A library's kernel has a function in each context. */
ENTRY_BODY(cuKernelGetFunction, (CUfunction * function, CUkernel handle), (function, handle))
{
	struct kernel *kernel = kernel_check(handle);
	struct module *module;
	CUresult result;

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel || !kernel_is_of_library(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	result = instantiate_kernel(kernel, &module);
	return result == CUDA_SUCCESS
		       ? module_get_kernel(module, false, kernel->name, (void **)function)
		       : result;
}

ENTRY_BODY(cuKernelGetLibrary, (CUlibrary * library, CUkernel handle), (library, handle))
{
	struct kernel *kernel = kernel_check(handle);

	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel || !kernel->module->is_library)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = (CUlibrary)kernel->module;
	return CUDA_SUCCESS;
}
