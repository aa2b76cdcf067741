/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, and what is asked and set of kernels. */
#include <string.h>

#include "sim/cudart/entry.h"

static CUresult launch(CUfunction function, struct runtime_size grid, struct runtime_size block,
	void **params, size_t shared_bytes, CUstream stream)
{
	/* The kernel that stands for the program's has no parameters. */
	(void)params;
	return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned int)shared_bytes, stream, NULL, NULL);
}

static CUresult launch_host(const void *host, struct runtime_size grid, struct runtime_size block,
	void **params, size_t shared_bytes, CUstream stream)
{
	CUfunction function;
	CUresult result = runtime_find_function(host, &function);

	return result == CUDA_SUCCESS ? launch(function, grid, block, params, shared_bytes, stream)
				      : result;
}

#define LAUNCH_PARAMS                                                                          \
	(const void *host, struct runtime_size grid, struct runtime_size block, void **params, \
		size_t shared_bytes, CUstream stream)

RUNTIME(cudaLaunchKernel, LAUNCH_PARAMS,
	launch_host(host, grid, block, params, shared_bytes, stream))
RUNTIME(cudaLaunchCooperativeKernel, LAUNCH_PARAMS,
	launch_host(host, grid, block, params, shared_bytes, stream))
RUNTIME(__cudaLaunchKernel, LAUNCH_PARAMS,
	launch_host(host, grid, block, params, shared_bytes, stream))

static CUresult launch_config(const CUlaunchConfig *config, const void *host)
{
	CUfunction function;
	CUresult result = runtime_find_function(host, &function);

	return result == CUDA_SUCCESS ? cuLaunchKernelEx(config, function, NULL, NULL) : result;
}

RUNTIME(cudaLaunchKernelExC, (const CUlaunchConfig *config, const void *host, void **params),
	((void)params, launch_config(config, host)))
RUNTIME(cudaGetKernel, (void **kernel, const void *host), runtime_find_kernel(host, kernel))
RUNTIME(__cudaGetKernel, (void **kernel, const void *host), runtime_find_kernel(host, kernel))
RUNTIME(cudaGetFuncBySymbol, (CUfunction * function, const void *host),
	runtime_find_function(host, function))

/* What kernel<<<...>>> says, until the compiler's stub asks for it. */
#define PUSHED_MAX 8
static _Thread_local struct {
	struct runtime_size grid, block;
	size_t shared_bytes;
	CUstream stream;
} pushed[PUSHED_MAX];
static _Thread_local unsigned int pushed_count;

RUNTIME_EXPORT unsigned int __cudaPushCallConfiguration(
	struct runtime_size grid, struct runtime_size block, size_t shared_bytes, CUstream stream);
RUNTIME_EXPORT unsigned int __cudaPushCallConfiguration(
	struct runtime_size grid, struct runtime_size block, size_t shared_bytes, CUstream stream)
{
	if (pushed_count == PUSHED_MAX)
		return 1;
	pushed[pushed_count].grid = grid;
	pushed[pushed_count].block = block;
	pushed[pushed_count].shared_bytes = shared_bytes;
	pushed[pushed_count++].stream = stream;
	return 0;
}

RUNTIME_EXPORT cudaError_t __cudaPopCallConfiguration(struct runtime_size *grid,
	struct runtime_size *block, size_t *shared_bytes, CUstream *stream);
RUNTIME_EXPORT cudaError_t __cudaPopCallConfiguration(struct runtime_size *grid,
	struct runtime_size *block, size_t *shared_bytes, CUstream *stream)
{
	if (!pushed_count)
		return CUDA_ERROR_INVALID_VALUE;
	pushed_count--;
	*grid = pushed[pushed_count].grid;
	*block = pushed[pushed_count].block;
	*shared_bytes = pushed[pushed_count].shared_bytes;
	*stream = pushed[pushed_count].stream;
	return CUDA_SUCCESS;
}

/* cudaFuncAttributes: what comes first of it, which is the same in both versions. */
struct function_attributes {
	size_t shared_bytes, constant_bytes, local_bytes;
	int threads_max, registers, ptx_version, binary_version;
};

static CUresult read_attributes(struct function_attributes *ret_attributes, const void *host)
{
	const struct {
		CUfunction_attribute attribute;
		int *value;
	} values[] = {
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &ret_attributes->threads_max},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, &ret_attributes->registers},
		{CU_FUNC_ATTRIBUTE_PTX_VERSION, &ret_attributes->ptx_version},
		{CU_FUNC_ATTRIBUTE_BINARY_VERSION, &ret_attributes->binary_version},
	};
	CUfunction function;
	CUresult result = runtime_find_function(host, &function);

	if (!ret_attributes)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	memset(ret_attributes, 0, sizeof(*ret_attributes));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (cuFuncGetAttribute(values[i].value, values[i].attribute, function) !=
			CUDA_SUCCESS)
			*values[i].value = 0;
	return CUDA_SUCCESS;
}

RUNTIME(cudaFuncGetAttributes, (struct function_attributes * attributes, const void *host),
	read_attributes(attributes, host))

static CUresult set_attribute(const void *host, CUfunction_attribute attribute, int value)
{
	CUfunction function;
	CUresult result = runtime_find_function(host, &function);

	return result == CUDA_SUCCESS ? cuFuncSetAttribute(function, attribute, value) : result;
}

RUNTIME(cudaFuncSetAttribute, (const void *host, CUfunction_attribute attribute, int value),
	set_attribute(host, attribute, value))
RUNTIME(cudaKernelSetAttributeForDevice,
	(void *kernel, CUfunction_attribute attribute, int value, int device),
	((void)device, set_attribute(kernel, attribute, value)))

static CUresult set_cache(const void *host, CUfunc_cache config)
{
	CUfunction function;
	CUresult result = runtime_find_function(host, &function);

	return result == CUDA_SUCCESS ? cuFuncSetCacheConfig(function, config) : result;
}

RUNTIME(cudaFuncSetCacheConfig, (const void *host, CUfunc_cache config), set_cache(host, config))

static CUresult count_blocks(
	int *ret_blocks, const void *host, int threads, size_t shared_bytes, unsigned int flags)
{
	CUfunction function;
	CUresult result = runtime_find_function(host, &function);

	return result == CUDA_SUCCESS ? cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
						ret_blocks, function, threads, shared_bytes, flags)
				      : result;
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *blocks, const void *host, int threads, size_t shared_bytes),
	count_blocks(blocks, host, threads, shared_bytes, 0))
RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *blocks, const void *host, int threads, size_t shared_bytes, unsigned int flags),
	count_blocks(blocks, host, threads, shared_bytes, flags))
