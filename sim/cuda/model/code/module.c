/* SPDX-License-Identifier: Apache-2.0 */
/* Loading modules, and what is found in them. */
#include "sim/cuda/model/code/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"

CUresult module_read_error(int r)
{
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

struct module *module_check(const void *handle, bool is_library)
{
	const struct module *module = handle;

	return module != NULL && module->magic == MODULE_MAGIC && module->is_library == is_library
		       ? (struct module *)module
		       : NULL;
}

CUresult module_new(struct context *context, struct image *image, struct module **ret_module)
{
	struct module *module = calloc(1, sizeof(*module));
	CUresult result;

	if (module == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->image = image;
	module->context = context;
	result = module_take_memory(module);
	if (result != CUDA_SUCCESS) {
		free(module);
		return result;
	}
	module->magic = MODULE_MAGIC;
	driver_keep_relic(&module->relic);
	module->next = context->modules;
	if (context->modules != NULL)
		context->modules->prev = module;
	context->modules = module;
	*ret_module = module;
	return CUDA_SUCCESS;
}

static void leave_library(struct module *module)
{
	struct module **link = &module->library->instances;

	while (*link != module)
		link = &(*link)->next_instance;
	*link = module->next_instance;
}

/* The structures stay behind, so that stale handles can be told. */
void module_end(struct module *module)
{
	if (module->library != NULL)
		leave_library(module);
	if (module->context != NULL) {
		module_give_memory(module);
		if (module->prev != NULL)
			module->prev->next = module->next;
		else
			module->context->modules = module->next;
		if (module->next != NULL)
			module->next->prev = module->prev;
	}
	for (struct kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next)
		/* Relaxed: a launch under way may still find it; its image is never freed. */
		__atomic_store_n(&kernel->magic, 0, __ATOMIC_RELAXED);
	module->magic = 0;
}

void module_clear(struct context *context)
{
	while (context->modules != NULL)
		module_end(context->modules);
}

static CUresult load(CUmodule *ret_module, const void *data)
{
	struct context *context;
	struct image *image;
	struct module *module;
	CUresult result = context_current(&context);
	int r;

	if (result != CUDA_SUCCESS)
		return result;
	if (ret_module == NULL || data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(data, &image);
	if (r != 0)
		return module_read_error(r);
	pthread_mutex_lock(&driver.memory_lock);
	result = module_new(context, image, &module);
	pthread_mutex_unlock(&driver.memory_lock);
	if (result != CUDA_SUCCESS)
		image_free(image);
	else
		*ret_module = (CUmodule)module;
	return result;
}

CUresult module_read_file(const char *path, char **ret_data, size_t *ret_bytes)
{
	struct stat st;
	char *data;
	ssize_t n = 0, done = 0;
	int fd;

	if (path == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	data = fstat(fd, &st) == 0 ? calloc(1, (size_t)st.st_size + 8) : NULL;
	while (data != NULL && done < st.st_size &&
		(n = read(fd, data + done, (size_t)(st.st_size - done))) > 0)
		done += n;
	close(fd);
	if (data == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_data = data;
	*ret_bytes = (size_t)done;
	return CUDA_SUCCESS;
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

ENTRY_BODY(cuModuleLoadData, (CUmodule * module, const void *image), (module, image))
{
	return load(module, image);
}

ENTRY_BODY(cuModuleLoadDataEx,
	(CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
		void **values),
	(module, image, count, options, values))
{
	return load(module, image);
}

ENTRY_BODY(cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image))
{
	return load(module, image);
}

ENTRY_BODY(cuModuleUnload, (CUmodule handle), (handle))
{
	struct module *module;
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver.memory_lock);
	module = module_check(handle, false);
	if (module != NULL)
		module_end(module);
	pthread_mutex_unlock(&driver.memory_lock);
	return module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

struct kernel *module_find_kernel(struct module *module, const char *name)
{
	const struct image_kernel *image = image_find(module->image, name);
	struct kernel *kernel;

	for (kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
		if (strcmp(kernel->name, name) == 0)
			return kernel;
	}
	if (image == NULL && !module->image->is_opaque)
		return NULL;
	kernel = calloc(1, sizeof(*kernel));
	if (kernel == NULL)
		return NULL;
	kernel->own_name = strdup(name);
	if (kernel->own_name == NULL) {
		free(kernel);
		return NULL;
	}
	kernel->name = kernel->own_name;
	kernel->magic = KERNEL_MAGIC;
	kernel->module = module;
	kernel->image = image;
	kernel->next = module->kernels;
	module->kernels = kernel;
	return kernel;
}

CUresult module_get_kernel(const void *handle, bool is_library, const char *name, void **ret_kernel)
{
	struct module *module;
	struct kernel *kernel = NULL;

	if (ret_kernel == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	module = module_check(handle, is_library);
	if (module != NULL)
		kernel = module_find_kernel(module, name);
	pthread_mutex_unlock(&driver.memory_lock);
	if (module == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (kernel == NULL)
		return CUDA_ERROR_NOT_FOUND;
	*ret_kernel = kernel;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
	(function, module, name))
{
	struct context *context;
	CUresult result = context_current(&context);

	return result == CUDA_SUCCESS ? module_get_kernel(module, false, name, (void **)function)
				      : result;
}

CUresult module_count_kernels(const void *handle, bool is_library, unsigned int *count)
{
	struct module *module;

	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	module = module_check(handle, is_library);
	if (module != NULL)
		*count = module->image->kernel_count;
	pthread_mutex_unlock(&driver.memory_lock);
	return module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult module_list_kernels(
	const void *handle, bool is_library, void **ret_kernels, unsigned int most)
{
	struct module *module;
	CUresult result = CUDA_SUCCESS;

	if (ret_kernels == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	module = module_check(handle, is_library);
	if (module == NULL)
		result = CUDA_ERROR_INVALID_HANDLE;
	for (unsigned int i = 0; module != NULL && i < module->image->kernel_count && i < most;
		i++) {
		ret_kernels[i] = module_find_kernel(module, module->image->kernel[i].name);
		if (ret_kernels[i] == NULL)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned int most, CUmodule module),
	(functions, most, module))
{
	return module_list_kernels(module, false, (void **)functions, most);
}

ENTRY_BODY(cuModuleGetFunctionCount, (unsigned int *count, CUmodule module), (count, module))
{
	return module_count_kernels(module, false, count);
}

CUresult module_find_global(const struct module *module, const char *name, bool is_managed_only,
	CUdeviceptr *dptr, size_t *size)
{
	for (unsigned int i = 0; i < module->image->global_count; i++) {
		if (strcmp(module->image->global[i].name, name) != 0 ||
			(is_managed_only && !module->image->global[i].is_managed))
			continue;
		if (dptr != NULL)
			*dptr = module->globals[i];
		if (size != NULL)
			*size = module->image->global[i].size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

ENTRY_BODY(cuModuleGetGlobal_v2,
	(CUdeviceptr * dptr, size_t *size, CUmodule handle, const char *name),
	(dptr, size, handle, name))
{
	struct module *module;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (name == NULL || (dptr == NULL && size == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	module = module_check(handle, false);
	if (module != NULL)
		result = module_find_global(module, name, false, dptr, size);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuModuleGetGlobal,
	(CUdeviceptr_v1 * dptr, unsigned int *size, CUmodule module, const char *name),
	(dptr, size, module, name))
{
	/* Addresses of 32 bits: see memory.c. */
	return CUDA_ERROR_INVALID_CONTEXT;
}

ENTRY_BODY(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), (mode))
{
	const char *wanted = getenv("CUDA_MODULE_LOADING");

	if (mode == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = wanted != NULL && strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING
							       : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}
