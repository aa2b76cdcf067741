/* SPDX-License-Identifier: Apache-2.0 */
/* What functions say of themselves, and occupancy. */
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/module.h"

struct kernel *module_check_kernel(const void *handle)
{
	struct kernel *kernel = (struct kernel *)handle;

	/* Relaxed: see end_module(). */
	return kernel && atomic_load_explicit(&kernel->magic, memory_order_relaxed) == KERNEL_MAGIC
		       ? kernel
		       : NULL;
}

uint64_t module_frame_bytes(const struct kernel *kernel)
{
	return kernel->image ? kernel->image->frame_bytes : 0;
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute, const void *handle)
{
	struct kernel *kernel = module_check_kernel(handle);
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
		*value = (int)module_frame_bytes(kernel);
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
	struct kernel *kernel = module_check_kernel(handle);

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

ENTRY_BODY(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function),
	(value, attribute, function))
{
	return get_attribute(value, attribute, function);
}

ENTRY_BODY(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
	(function, attribute, value))
{
	return set_attribute(function, attribute, value);
}

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

ENTRY_BODY(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config), (function, config))
{
	return module_check_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(
	cuFuncSetSharedMemConfig, (CUfunction function, CUsharedconfig config), (function, config))
{
	return module_check_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuFuncGetModule, (CUmodule * module, CUfunction function), (module, function))
{
	struct kernel *kernel = module_check_kernel(function);
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
		pthread_mutex_lock(&driver.memory_lock);
		result = module_instantiate(mine, context, &mine);
		pthread_mutex_unlock(&driver.memory_lock);
	}
	if (result == CUDA_SUCCESS)
		*module = (CUmodule)mine;
	return result;
}

static CUresult get_name(const char **name, const void *handle)
{
	struct kernel *kernel = module_check_kernel(handle);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuFuncGetName, (const char **name, CUfunction function), (name, function))
{
	return get_name(name, function);
}

ENTRY_BODY(cuKernelGetName, (const char **name, CUkernel kernel), (name, kernel))
{
	return get_name(name, kernel);
}

static CUresult get_param_info(const void *handle, size_t index, size_t *offset, size_t *size)
{
	struct kernel *kernel = module_check_kernel(handle);

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

ENTRY_BODY(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *size),
	(function, index, offset, size))
{
	return get_param_info(function, index, offset, size);
}

ENTRY_BODY(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *size),
	(kernel, index, offset, size))
{
	return get_param_info(kernel, index, offset, size);
}

ENTRY_BODY(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device),
	(kernel, config, device))
{
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return module_check_kernel(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function), (state, function))
{
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module_check_kernel(function))
		return CUDA_ERROR_INVALID_HANDLE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuFuncLoad, (CUfunction function), (function))
{
	return module_check_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Blocks of this size on one multiprocessor, by threads, blocks and shared memory alone. */
static int blocks_per_sm(int block_size, size_t shared_bytes)
{
	const struct board *board = driver.board;
	int warps = (block_size + 31) / 32;
	int blocks = board->max_threads_per_sm / 32 / warps;

	if (blocks > board->max_blocks_per_sm)
		blocks = board->max_blocks_per_sm;
	/* Each block costs 1 KiB of shared memory more since compute capability 8. */
	if (shared_bytes > 0 &&
		board->shared_per_sm_bytes / (shared_bytes + 1024) < (uint64_t)blocks)
		blocks = (int)(board->shared_per_sm_bytes / (shared_bytes + 1024));
	return blocks;
}

static CUresult occupancy(int *blocks, const void *handle, int block_size, size_t shared_bytes)
{
	if (!blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module_check_kernel(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*blocks = block_size > 1024 ? 0 : blocks_per_sm(block_size, shared_bytes);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *blocks, CUfunction function, int block_size, size_t shared_bytes),
	(blocks, function, block_size, shared_bytes))
{
	return occupancy(blocks, function, block_size, shared_bytes);
}

ENTRY_BODY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *blocks, CUfunction function, int block_size, size_t shared_bytes, unsigned int flags),
	(blocks, function, block_size, shared_bytes, flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE
			 : occupancy(blocks, function, block_size, shared_bytes);
}

static CUresult best_block(int *min_grid_size, int *block_size, const void *handle,
	CUoccupancyB2DSize block_to_shared, size_t shared_bytes, int limit)
{
	int best = 0, best_threads = 0, best_blocks = 0;

	if (!min_grid_size || !block_size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module_check_kernel(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	if (limit <= 0 || limit > 1024)
		limit = 1024;
	for (int size = limit; size > 0; size = (size - 1) / 32 * 32) {
		int blocks =
			blocks_per_sm(size, block_to_shared ? block_to_shared(size) : shared_bytes);

		if (blocks * size > best_threads) {
			best = size;
			best_blocks = blocks;
			best_threads = blocks * size;
		}
	}
	*block_size = best;
	*min_grid_size = best_blocks * driver.board->sm_count;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuOccupancyMaxPotentialBlockSize,
	(int *min_grid_size, int *block_size, CUfunction function,
		CUoccupancyB2DSize block_to_shared, size_t shared_bytes, int block_size_limit),
	(min_grid_size, block_size, function, block_to_shared, shared_bytes, block_size_limit))
{
	return best_block(min_grid_size, block_size, function, block_to_shared, shared_bytes,
		block_size_limit);
}

ENTRY_BODY(cuOccupancyMaxPotentialBlockSizeWithFlags,
	(int *min_grid_size, int *block_size, CUfunction function,
		CUoccupancyB2DSize block_to_shared, size_t shared_bytes, int block_size_limit,
		unsigned int flags),
	(min_grid_size, block_size, function, block_to_shared, shared_bytes, block_size_limit,
		flags))
{
	return best_block(min_grid_size, block_size, function, block_to_shared, shared_bytes,
		block_size_limit);
}
