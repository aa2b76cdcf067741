/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: how long they take, and what a launch needs. */
#include "sim/cuda/model/code/kernel.h"

#include <stddef.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/library.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"

CUresult kernel_make_ready(struct kernel *kernel, struct context *context)
{
	struct module *module = kernel->module;
	CUresult result = CUDA_SUCCESS;

	/* Relaxed: what was taken stays as long as the context lives and the kernel is loaded. */
	if (atomic_load_explicit(&kernel->ready_life, memory_order_relaxed) == context->life)
		return CUDA_SUCCESS;
	LOCK_SCOPE(&driver.memory_lock);
	/* Another thread may have unloaded it meanwhile. */
	if (module->magic != MODULE_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (module->is_library)
		result = library_instantiate(module, context, &module);
	if (result == CUDA_SUCCESS)
		result = module_take_heap(module);
	if (result == CUDA_SUCCESS)
		atomic_store_explicit(&kernel->ready_life, context->life, memory_order_relaxed);
	return result;
}

struct kernel *kernel_check(const void *handle)
{
	size_t offset = kernel_is_of_library(handle) ? offsetof(struct kernel, library_magic) : 0;
	struct kernel *kernel = (struct kernel *)((uintptr_t)handle - offset);

	/* Relaxed: see end_module(). */
	return kernel && atomic_load_explicit(&kernel->magic, memory_order_relaxed) == KERNEL_MAGIC
		       ? kernel
		       : NULL;
}

uint64_t kernel_frame_bytes(const struct kernel *kernel)
{
	return kernel->image ? kernel->image->frame_bytes : 0;
}

/* A kernel that says nothing of its duration. */
#define DEFAULT_DURATION_NS 10000

/* The value of the parameter duration_ns, however parameters are passed. */
static bool read_param(
	const struct image_kernel *image, void **params, void **extra, uint64_t *ret_value)
{
	int index = image->duration_param;

	if (index < 0)
		return false;
	if (params) {
		memcpy(ret_value, params[index], sizeof(*ret_value));
		return true;
	}
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER)
			continue;
		memcpy(ret_value, (const char *)extra[1] + image->param[index].offset,
			sizeof(*ret_value));
		return true;
	}
	return false;
}

/* The duration that the machine's rules set for the kernel, looked up once per change; 0: none. */
static uint64_t find_rule(struct kernel *kernel)
{
	uint64_t epoch = inject_kernel_epoch(driver.machine);
	uint64_t duration = 0;

	/* Pairs with the release below: who sees the epoch sees its duration. */
	if (atomic_load_explicit(&kernel->rule_epoch, memory_order_acquire) == epoch)
		return atomic_load_explicit(&kernel->rule_duration_ns, memory_order_relaxed);
	if (inject_find_kernel(driver.machine, kernel->name, &duration) != 0)
		duration = 0;
	/* Relaxed: ordered by the release that follows. */
	atomic_store_explicit(&kernel->rule_duration_ns, duration, memory_order_relaxed);
	/* Pairs with the acquire above. */
	atomic_store_explicit(&kernel->rule_epoch, epoch, memory_order_release);
	return duration;
}

uint64_t kernel_duration(struct kernel *kernel, void **params, void **extra)
{
	uint64_t duration;

	if (kernel->image && read_param(kernel->image, params, extra, &duration))
		return duration;
	duration = find_rule(kernel);
	if (duration != 0)
		return duration;
	if (kernel->image && kernel->image->duration_ns != IMAGE_DURATION_NONE)
		return kernel->image->duration_ns;
	return DEFAULT_DURATION_NS;
}
