/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: questions about libraries, kernels and functions, whose handles may be of what was unloaded here. */
#include "tenant/hooks/hook.h"
#include "tenant/memory/libraries.h"

/* The rest of a hook: the driver's answer, with the handle that it is about. */
#define ASK(handle, call)                                \
	{                                                \
		CUresult r;                              \
                                                         \
		if (!libraries_enter(handle))            \
			return CUDA_ERROR_OUT_OF_MEMORY; \
		r = call;                                \
		libraries_leave();                       \
		return r;                                \
	}

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuLibraryGetKernel, CUkernel *, kernel, CUlibrary, library, const char *, name)
{
	CUkernel made = NULL;
	CUresult r;

	if (!libraries_enter(library))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = cuda.cuLibraryGetKernel(kernel ? &made : NULL, library, name);
	if (r == CUDA_SUCCESS)
		libraries_given(made);
	libraries_leave();
	return kernel ? HOOK_GIVE(r, kernel, made) : r;
}

/* Its handle may have the address of a kernel that went with a library which did not fit. */
HOOK_BODY(cuModuleGetFunction, CUfunction *, function, CUmodule, module, const char *, name)
{
	CUfunction made = NULL;
	CUresult r = cuda.cuModuleGetFunction(function ? &made : NULL, module, name);

	if (r == CUDA_SUCCESS)
		libraries_given(made);
	return function ? HOOK_GIVE(r, function, made) : r;
}

/* Its handles may have the addresses of kernels that went with a library which did not fit. */
HOOK_BODY(cuModuleEnumerateFunctions, CUfunction *, functions, unsigned int, most, CUmodule, module)
{
	CUresult r = cuda.cuModuleEnumerateFunctions(functions, most, module);

	if (r == CUDA_SUCCESS)
		libraries_given_module(module);
	return r;
}

static CUresult list_kernels(CUkernel *kernels, unsigned most, CUlibrary library)
{
	CUresult r = cuda.cuLibraryEnumerateKernels(kernels, most, library);

	if (r == CUDA_SUCCESS)
		libraries_given_library(library);
	return r;
}

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuLibraryGetKernelCount, unsigned int *, count, CUlibrary, library)
ASK(library, cuda.cuLibraryGetKernelCount(count, library))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuLibraryEnumerateKernels, CUkernel *, kernels, unsigned int, most, CUlibrary, library)
ASK(library, list_kernels(kernels, most, library))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuKernelGetLibrary, CUlibrary *, library, CUkernel, kernel)
ASK(kernel, cuda.cuKernelGetLibrary(library, kernel))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuKernelGetName, const char **, name, CUkernel, kernel)
ASK(kernel, cuda.cuKernelGetName(name, kernel))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuKernelGetParamInfo, CUkernel, kernel, size_t, index, size_t *, offset, size_t *, size)
ASK(kernel, cuda.cuKernelGetParamInfo(kernel, index, offset, size))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuKernelGetAttribute, int *, value, CUfunction_attribute, attribute, CUkernel, kernel,
	CUdevice, device)
ASK(kernel, cuda.cuKernelGetAttribute(value, attribute, kernel, device))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuKernelSetAttribute, CUfunction_attribute, attribute, int, value, CUkernel, kernel,
	CUdevice, device)
ASK(kernel, cuda.cuKernelSetAttribute(attribute, value, kernel, device))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuKernelSetCacheConfig, CUkernel, kernel, CUfunc_cache, config, CUdevice, device)
ASK(kernel, cuda.cuKernelSetCacheConfig(kernel, config, device))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyAvailableDynamicSMemPerBlock, size_t *, bytes, CUfunction, function, int,
	blocks, int, block_size)
ASK(function, cuda.cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, block_size))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *, blocks, CUfunction, function, int,
	block_size, size_t, shared_bytes)
ASK(function, cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
		      blocks, function, block_size, shared_bytes))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *, blocks, CUfunction, function,
	int, block_size, size_t, shared_bytes, unsigned int, flags)
ASK(function, cuda.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		      blocks, function, block_size, shared_bytes, flags))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyMaxActiveClusters, int *, count, CUfunction, function, const CUlaunchConfig *,
	config)
ASK(function, cuda.cuOccupancyMaxActiveClusters(count, function, config))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyMaxPotentialClusterSize, int *, size, CUfunction, function,
	const CUlaunchConfig *, config)
ASK(function, cuda.cuOccupancyMaxPotentialClusterSize(size, function, config))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyMaxPotentialBlockSize, int *, grid_size, int *, block_size, CUfunction,
	function, CUoccupancyB2DSize, block_to_shared, size_t, shared_bytes, int, limit)
ASK(function, cuda.cuOccupancyMaxPotentialBlockSize(
		      grid_size, block_size, function, block_to_shared, shared_bytes, limit))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuOccupancyMaxPotentialBlockSizeWithFlags, int *, grid_size, int *, block_size,
	CUfunction, function, CUoccupancyB2DSize, block_to_shared, size_t, shared_bytes, int, limit,
	unsigned int, flags)
ASK(function, cuda.cuOccupancyMaxPotentialBlockSizeWithFlags(
		      grid_size, block_size, function, block_to_shared, shared_bytes, limit, flags))
