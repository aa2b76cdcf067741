/* SPDX-License-Identifier: Apache-2.0 */
/* Loading modules, and what is found in them. */
#include "sim/cuda/model/code/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"

CUresult module_read_error(int r)
{
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

struct module *module_check(const void *handle, bool is_library)
{
	const struct module *module = handle;

	return module && module->magic == MODULE_MAGIC && module->is_library == is_library
		       ? (struct module *)module
		       : NULL;
}

/*
 * What has ended, the oldest first. A handle of it is refused for a while; then the driver uses its memory again, as the
 * real one does.
 */
#define DEAD_KEPT 4
static struct module *dead_modules, **dead_modules_end = &dead_modules;
static unsigned dead_module_count;

static void bury_module(struct module *module)
{
	module->magic = 0;
	module->next = NULL;
	*dead_modules_end = module;
	dead_modules_end = &module->next;
	dead_module_count++;
}

/* A launch under way may still find it, so it is never freed. Nobody walks the list. */
static void keep_image(struct image *image)
{
	static struct image *kept;

	if (!image || image->is_kept)
		return;
	image->is_kept = true;
	image->next_kept = kept;
	kept = image;
}

struct module *module_take_place(void)
{
	struct module *module = dead_modules;
	struct relic relic;

	if (dead_module_count <= DEAD_KEPT) {
		module = calloc(1, sizeof(*module));
		if (module)
			driver_keep_relic(&module->relic);
		return module;
	}
	dead_modules = module->next;
	dead_module_count--;
	keep_image(module->image);
	relic = module->relic;
	memset(module, 0, sizeof(*module));
	module->relic = relic;
	return module;
}

CUresult module_new(struct context *context, struct image *image, struct module **ret_module)
{
	struct module *module = module_take_place();
	CUresult result;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->image = image;
	module->context = context;
	result = module_take_memory(module);
	if (result != CUDA_SUCCESS) {
		bury_module(module);
		return result;
	}
	module->magic = MODULE_MAGIC;
	module->next = context->modules;
	if (context->modules)
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

/* Kernels that have ended: the same address may be a kernel's at one time and a function's at another. */
static struct kernel *dead, **dead_end = &dead;
static unsigned dead_count;

/* In its memory a function's handle has the address that a library's kernel has. */
#define FUNCTION_OFFSET offsetof(struct kernel, library_magic)

static void bury_kernel(struct kernel *kernel)
{
	/* Relaxed: a launch under way may still find it; its image is never freed. */
	atomic_store_explicit(&kernel->magic, 0, memory_order_relaxed);
	kernel->next = NULL;
	*dead_end = kernel;
	dead_end = &kernel->next;
	dead_count++;
}

static struct kernel *new_kernel(bool is_library)
{
	const size_t bytes = sizeof(struct kernel) + FUNCTION_OFFSET;
	struct kernel *oldest = dead;
	char *memory;

	if (dead_count <= DEAD_KEPT) {
		memory = calloc(1, bytes);
	} else {
		dead = oldest->next;
		dead_count--;
		memory = oldest->memory;
		free(oldest->own_name);
		memset(memory, 0, bytes);
	}
	if (!memory)
		return NULL;
	oldest = (struct kernel *)(void *)(memory + (is_library ? 0 : FUNCTION_OFFSET));
	oldest->memory = memory;
	return oldest;
}

/* The structures stay behind, so that stale handles can be told. */
void module_end(struct module *module)
{
	if (module->library)
		leave_library(module);
	if (module->context) {
		module_give_memory(module);
		if (module->prev)
			module->prev->next = module->next;
		else
			module->context->modules = module->next;
		if (module->next)
			module->next->prev = module->prev;
	}
	while (module->kernels) {
		struct kernel *kernel = module->kernels;

		module->kernels = kernel->next;
		bury_kernel(kernel);
	}
	bury_module(module);
}

void module_clear(struct context *context)
{
	while (context->modules)
		module_end(context->modules);
}

CUresult module_read_file(const char *path, char **ret_data, size_t *ret_bytes)
{
	struct stat st;
	char *data;
	ssize_t n = 0, done = 0;
	int fd;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	data = fstat(fd, &st) == 0 ? calloc(1, (size_t)st.st_size + 8) : NULL;
	while (data && done < st.st_size &&
		(n = read(fd, data + done, (size_t)(st.st_size - done))) > 0)
		done += n;
	close(fd);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_data = data;
	*ret_bytes = (size_t)done;
	return CUDA_SUCCESS;
}

/* The kernel of this name, the same one at each call; NULL for none. Under memory_lock. */
static struct kernel *find_kernel(struct module *module, const char *name)
{
	const struct image_kernel *image = image_find(module->image, name);
	struct kernel *kernel;
	char *own_name;

	for (kernel = module->kernels; kernel; kernel = kernel->next) {
		if (strcmp(kernel->name, name) == 0)
			return kernel;
	}
	if (!image && !module->image->is_opaque)
		return NULL;
	own_name = strdup(name);
	kernel = own_name ? new_kernel(module->is_library) : NULL;
	if (!kernel) {
		free(own_name);
		return NULL;
	}
	kernel->own_name = own_name;
	kernel->name = kernel->own_name;
	atomic_init(&kernel->magic, KERNEL_MAGIC);
	kernel->library_magic = KERNEL_LIBRARY_MAGIC;
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

	if (!ret_kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	module = module_check(handle, is_library);
	if (module)
		kernel = find_kernel(module, name);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	*ret_kernel = is_library ? (void *)kernel_library_handle(kernel) : kernel;
	return CUDA_SUCCESS;
}

CUresult module_count_kernels(const void *handle, bool is_library, unsigned int *count)
{
	struct module *module;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	module = module_check(handle, is_library);
	if (module)
		*count = module->image->kernel_count;
	return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult module_list_kernels(
	const void *handle, bool is_library, void **ret_kernels, unsigned int most)
{
	struct module *module;
	CUresult result = CUDA_SUCCESS;

	if (!ret_kernels)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	module = module_check(handle, is_library);
	if (!module)
		result = CUDA_ERROR_INVALID_HANDLE;
	for (unsigned int i = 0; module && i < module->image->kernel_count && i < most; i++) {
		struct kernel *kernel = find_kernel(module, module->image->kernel[i].name);

		if (!kernel)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		else
			ret_kernels[i] =
				is_library ? (void *)kernel_library_handle(kernel) : kernel;
	}
	return result;
}

CUresult module_find_global(const struct module *module, const char *name, bool is_managed_only,
	CUdeviceptr *dptr, size_t *size)
{
	for (unsigned int i = 0; i < module->image->global_count; i++) {
		if (strcmp(module->image->global[i].name, name) != 0 ||
			(is_managed_only && !module->image->global[i].is_managed))
			continue;
		if (dptr)
			*dptr = module->globals[i];
		if (size)
			*size = module->image->global[i].size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}
