/* SPDX-License-Identifier: Apache-2.0 */
/* Loading modules and libraries. */
#include "sim/cuda/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/context.h"
#include "sim/cuda/entry.h"

static CUresult read_error(int r)
{
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

/* A handle's module while it is loaded. */
static struct module *check(const void *handle, bool is_library)
{
	const struct module *module = handle;

	return module != NULL && module->magic == MODULE_MAGIC && module->is_library == is_library
		       ? (struct module *)module
		       : NULL;
}

/* Under memory_lock. */
static void drop_globals(struct module *module)
{
	for (unsigned int i = 0; module->globals != NULL && i < module->image->global_count; i++) {
		struct owner *owner = module->globals[i].base != 0
					      ? address_find_owner(module->globals[i].base)
					      : NULL;

		if (owner != NULL)
			heap_free(owner, module->globals[i].base);
	}
	free(module->globals);
	module->globals = NULL;
}

/* Global variables take device memory as long as the module is loaded. Under memory_lock. */
static CUresult take_globals(struct module *module)
{
	unsigned int count = module->image->global_count;
	CUresult result = CUDA_SUCCESS;

	if (count == 0)
		return CUDA_SUCCESS;
	module->globals = calloc(count, sizeof(*module->globals));
	if (module->globals == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
		size_t size = module->image->global[i].size;

		/* Small ones share the packed chunks; only large ones show up as module data. */
		result = heap_alloc(module->context, size,
			size > driver.board->chunk_bytes ? MACHINE_MODULE : MACHINE_PLAIN,
			&module->globals[i].base);
	}
	if (result != CUDA_SUCCESS)
		drop_globals(module);
	return result;
}

/* Under memory_lock. The image stays the caller's on failure. */
static CUresult new_module(struct context *context, struct image *image, struct module **ret_module)
{
	struct module *module = calloc(1, sizeof(*module));
	CUresult result;

	if (module == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->image = image;
	module->context = context;
	result = take_globals(module);
	if (result != CUDA_SUCCESS) {
		free(module);
		return result;
	}
	module->magic = MODULE_MAGIC;
	module->next = context->modules;
	if (context->modules != NULL)
		context->modules->prev = module;
	context->modules = module;
	*ret_module = module;
	return CUDA_SUCCESS;
}

/* Under memory_lock. The structures stay behind, so that stale handles can be told. */
static void end_module(struct module *module)
{
	drop_globals(module);
	if (module->context != NULL) {
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
		end_module(context->modules);
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
		return read_error(r);
	pthread_mutex_lock(&driver.memory_lock);
	result = new_module(context, image, &module);
	pthread_mutex_unlock(&driver.memory_lock);
	if (result != CUDA_SUCCESS)
		image_free(image);
	else
		*ret_module = (CUmodule)module;
	return result;
}

/* The whole file with a zero behind it. */
static CUresult read_file(const char *path, char **ret_data)
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
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuModuleLoad, (CUmodule * module, const char *path), (module, path))
{
	char *data;
	CUresult result = read_file(path, &data);

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
	module = check(handle, false);
	if (module != NULL)
		end_module(module);
	pthread_mutex_unlock(&driver.memory_lock);
	return module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The kernel of this name, the same one at each call. Under memory_lock. */
static struct kernel *find_kernel(struct module *module, const char *name)
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

static CUresult get_kernel(const void *handle, bool is_library, const char *name, void **ret_kernel)
{
	struct module *module;
	struct kernel *kernel = NULL;

	if (ret_kernel == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	module = check(handle, is_library);
	if (module != NULL)
		kernel = find_kernel(module, name);
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

	return result == CUDA_SUCCESS ? get_kernel(module, false, name, (void **)function) : result;
}

static CUresult count_kernels(const void *handle, bool is_library, unsigned int *count)
{
	struct module *module;

	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	module = check(handle, is_library);
	if (module != NULL)
		*count = module->image->kernel_count;
	pthread_mutex_unlock(&driver.memory_lock);
	return module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuModuleGetFunctionCount, (unsigned int *count, CUmodule module), (count, module))
{
	return count_kernels(module, false, count);
}

/* Under memory_lock. */
static CUresult find_global(
	const struct module *module, const char *name, CUdeviceptr *dptr, size_t *size)
{
	for (unsigned int i = 0; i < module->image->global_count; i++) {
		if (strcmp(module->image->global[i].name, name) != 0)
			continue;
		if (dptr != NULL)
			*dptr = module->globals[i].base;
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
	module = check(handle, false);
	if (module != NULL)
		result = find_global(module, name, dptr, size);
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

static CUresult load_library(CUlibrary *ret_library, const void *data)
{
	struct module *library;
	struct image *image;
	int r;

	if (ret_library == NULL || data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(data, &image);
	if (r != 0)
		return read_error(r);
	library = calloc(1, sizeof(*library));
	if (library == NULL) {
		image_free(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	library->is_library = true;
	library->image = image;
	library->magic = MODULE_MAGIC;
	*ret_library = (CUlibrary)library;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuLibraryLoadData,
	(CUlibrary * library, const void *code, CUjit_option *options, void **values,
		unsigned int count, CUlibraryOption *library_options, void **library_values,
		unsigned int library_count),
	(library, code, options, values, count, library_options, library_values, library_count))
{
	return load_library(library, code);
}

ENTRY_BODY(cuLibraryLoadFromFile,
	(CUlibrary * library, const char *path, CUjit_option *options, void **values,
		unsigned int count, CUlibraryOption *library_options, void **library_values,
		unsigned int library_count),
	(library, path, options, values, count, library_options, library_values, library_count))
{
	char *data;
	CUresult result = read_file(path, &data);

	if (result != CUDA_SUCCESS)
		return result;
	result = load_library(library, data);
	free(data);
	return result;
}

/* The module of a library in the current context, loaded at its first use. Under memory_lock. */
static CUresult instantiate(struct module *library, struct module **ret_module)
{
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (library->loaded == NULL || library->loaded->magic != MODULE_MAGIC ||
		library->loaded->context != context) {
		result = new_module(context, library->image, &library->loaded);
		if (result != CUDA_SUCCESS)
			return result;
	}
	*ret_module = library->loaded;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuLibraryUnload, (CUlibrary handle), (handle))
{
	struct module *library;

	pthread_mutex_lock(&driver.memory_lock);
	library = check(handle, true);
	if (library != NULL) {
		if (library->loaded != NULL && library->loaded->magic == MODULE_MAGIC)
			end_module(library->loaded);
		end_module(library);
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return library != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
	(kernel, library, name))
{
	return get_kernel(library, true, name, (void **)kernel);
}

ENTRY_BODY(cuLibraryGetKernelCount, (unsigned int *count, CUlibrary library), (count, library))
{
	return count_kernels(library, true, count);
}

ENTRY_BODY(cuLibraryGetModule, (CUmodule * ret_module, CUlibrary handle), (ret_module, handle))
{
	struct module *library, *module;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (ret_module == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	library = check(handle, true);
	if (library != NULL)
		result = instantiate(library, &module);
	if (result == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuLibraryGetGlobal,
	(CUdeviceptr * dptr, size_t *size, CUlibrary handle, const char *name),
	(dptr, size, handle, name))
{
	struct module *library, *module;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (name == NULL || (dptr == NULL && size == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	library = check(handle, true);
	if (library != NULL)
		result = instantiate(library, &module);
	if (result == CUDA_SUCCESS)
		result = find_global(module, name, dptr, size);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

/* A library's kernel is a function of every context. */
ENTRY_BODY(cuKernelGetFunction, (CUfunction * function, CUkernel handle), (function, handle))
{
	struct kernel *kernel = module_check_kernel(handle);
	struct module *module;
	CUresult result;

	if (function == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver.memory_lock);
	result = instantiate(kernel->module, &module);
	pthread_mutex_unlock(&driver.memory_lock);
	if (result == CUDA_SUCCESS)
		*function = (CUfunction)kernel;
	return result;
}

ENTRY_BODY(cuKernelGetLibrary, (CUlibrary * library, CUkernel handle), (library, handle))
{
	struct kernel *kernel = module_check_kernel(handle);

	if (library == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel == NULL || !kernel->module->is_library)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = (CUlibrary)kernel->module;
	return CUDA_SUCCESS;
}
