/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: questions about libraries and their kernels, whose handles may be of one that was unloaded here. */
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
ASK(library, cuda.cuLibraryGetKernel(kernel, library, name))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuLibraryGetKernelCount, unsigned int *, count, CUlibrary, library)
ASK(library, cuda.cuLibraryGetKernelCount(count, library))

/* Refused for a library that was unloaded because it did not fit. */
HOOK_BODY(cuLibraryEnumerateKernels, CUkernel *, kernels, unsigned int, most, CUlibrary, library)
ASK(library, cuda.cuLibraryEnumerateKernels(kernels, most, library))

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
