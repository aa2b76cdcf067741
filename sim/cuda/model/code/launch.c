/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: nothing runs, the stream is busy for as long as the kernel says it takes. */
#include <string.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/launch.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/code/module.h"

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

uint64_t module_kernel_duration(struct kernel *kernel, void **params, void **extra)
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

static bool are_valid(const struct launch_size *size)
{
	uint64_t threads = (uint64_t)size->block[0] * size->block[1];

	for (int i = 0; i < 3; i++) {
		if (size->grid[i] == 0 || size->block[i] == 0)
			return false;
	}
	return size->block[0] <= 1024 && size->block[1] <= 1024 && size->block[2] <= 64 &&
	       threads * size->block[2] <= 1024 && size->grid[0] <= INT32_MAX &&
	       size->grid[1] <= 65535 && size->grid[2] <= 65535 &&
	       size->shared_bytes <= driver.board->shared_optin_bytes;
}

static CUresult capture(struct stream *stream, CUfunction function, const struct launch_size *size,
	void **params, void **extra)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wanted = {function, size->grid[0], size->grid[1], size->grid[2],
		size->block[0], size->block[1], size->block[2], size->shared_bytes, params, extra,
		NULL, NULL};
	struct work work;
	CUresult result = work_kernel(&wanted, &work);

	return result == CUDA_SUCCESS ? capture_add(stream, &work) : result;
}

CUresult launch_kernel(bool is_thread, CUfunction function, const struct launch_size *size,
	CUstream handle, void **params, void **extra)
{
	struct kernel *kernel = module_check_kernel(function);
	struct context *context;
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!are_valid(size) || (params && extra))
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->image && kernel->image->param_count > 0 && !params && !extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_is_on(stream))
		return capture(stream, function, size, params, extra);
	result = module_make_ready(kernel, context);
	if (result == CUDA_SUCCESS)
		result = context_make_local_room(context, module_frame_bytes(kernel));
	if (result != CUDA_SUCCESS)
		return result;
	timeline_add(stream, module_kernel_duration(kernel, params, extra), true);
	return CUDA_SUCCESS;
}

ENTRY_FORMS(cuLaunchKernel, _ptsz,
	(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		unsigned int block_x, unsigned int block_y, unsigned int block_z,
		unsigned int shared_bytes, CUstream stream, void **params, void **extra),
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
		extra))
{
	struct launch_size size = {
		{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};

	return launch_kernel(is_thread, function, &size, stream, params, extra);
}

ENTRY_FORMS(cuLaunchKernelEx, _ptsz,
	(const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
	(config, function, params, extra))
{
	struct launch_size size;

	if (!config || (config->numAttrs > 0 && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	size = (struct launch_size){{config->gridDimX, config->gridDimY, config->gridDimZ},
		{config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes};
	return launch_kernel(is_thread, function, &size, config->hStream, params, extra);
}

ENTRY_FORMS(cuLaunchCooperativeKernel, _ptsz,
	(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		unsigned int block_x, unsigned int block_y, unsigned int block_z,
		unsigned int shared_bytes, CUstream stream, void **params),
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params))
{
	struct launch_size size = {
		{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};

	return launch_kernel(is_thread, function, &size, stream, params, NULL);
}

/* One launch a device; the real driver refuses them all where one is wrong. */
ENTRY_BODY(cuLaunchCooperativeKernelMultiDevice,
	(CUDA_LAUNCH_PARAMS * list, unsigned int count, unsigned int flags), (list, count, flags))
{
	enum { FLAGS = 3 }; /* without synchronization before, after */
	CUresult result = CUDA_SUCCESS;

	if (!list || count == 0 || (flags & ~(unsigned int)FLAGS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		if (!list[i].hStream || list[i].hStream == CU_STREAM_LEGACY ||
			list[i].hStream == CU_STREAM_PER_THREAD)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
		const CUDA_LAUNCH_PARAMS *one = &list[i];
		struct launch_size size = {{one->gridDimX, one->gridDimY, one->gridDimZ},
			{one->blockDimX, one->blockDimY, one->blockDimZ}, one->sharedMemBytes};

		result = launch_kernel(
			false, one->function, &size, one->hStream, one->kernelParams, NULL);
	}
	return result;
}
