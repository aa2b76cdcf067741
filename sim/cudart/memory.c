/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, copies and fills. */
#include <stdint.h>

#include "sim/cudart/entry.h"

/* Device memory as the runtime has it. */
#define AT(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUresult allocate(void **ret_pointer, size_t bytes)
{
	CUdeviceptr address = 0;
	CUresult result;

	if (!ret_pointer)
		return CUDA_ERROR_INVALID_VALUE;
	/* No bytes are no error here, and no memory. */
	result = bytes ? cuMemAlloc_v2(&address, bytes) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		*ret_pointer = (void *)(uintptr_t)address;
	return result;
}

RUNTIME(cudaMalloc, (void **pointer, size_t bytes), allocate(pointer, bytes))
RUNTIME(cudaFree, (void *pointer), pointer ? cuMemFree_v2(AT(pointer)) : CUDA_SUCCESS)
RUNTIME(cudaMallocManaged, (void **pointer, size_t bytes, unsigned int flags),
	cuMemAllocManaged((CUdeviceptr *)pointer, bytes, flags))
RUNTIME(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height),
	cuMemAllocPitch_v2((CUdeviceptr *)pointer, pitch, width, height, 4))
RUNTIME(cudaMallocHost, (void **pointer, size_t bytes), cuMemHostAlloc(pointer, bytes, 0))
RUNTIME(cudaHostAlloc, (void **pointer, size_t bytes, unsigned int flags),
	cuMemHostAlloc(pointer, bytes, flags))
RUNTIME(cudaFreeHost, (void *pointer), pointer ? cuMemFreeHost(pointer) : CUDA_SUCCESS)
RUNTIME(cudaHostRegister, (void *pointer, size_t bytes, unsigned int flags),
	cuMemHostRegister_v2(pointer, bytes, flags))
RUNTIME(cudaHostUnregister, (void *pointer), cuMemHostUnregister(pointer))
RUNTIME(cudaHostGetDevicePointer, (void **device, void *host, unsigned int flags),
	cuMemHostGetDevicePointer_v2((CUdeviceptr *)device, host, flags))
RUNTIME(cudaHostGetFlags, (unsigned int *flags, void *host), cuMemHostGetFlags(flags, host))
RUNTIME(cudaMemGetInfo, (size_t * free_bytes, size_t *total_bytes),
	cuMemGetInfo_v2(free_bytes, total_bytes))
RUNTIME(cudaMallocAsync, (void **pointer, size_t bytes, CUstream stream),
	cuMemAllocAsync((CUdeviceptr *)pointer, bytes, stream))
RUNTIME(cudaMallocFromPoolAsync, (void **pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
	cuMemAllocFromPoolAsync((CUdeviceptr *)pointer, bytes, pool, stream))
RUNTIME(cudaFreeAsync, (void *pointer, CUstream stream), cuMemFreeAsync(AT(pointer), stream))
RUNTIME(cudaMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props),
	cuMemPoolCreate(pool, props))
RUNTIME(cudaMemPoolDestroy, (CUmemoryPool pool), cuMemPoolDestroy(pool))
RUNTIME(cudaMemPoolTrimTo, (CUmemoryPool pool, size_t keep_bytes),
	cuMemPoolTrimTo(pool, keep_bytes))
RUNTIME(cudaMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
	cuMemPoolGetAttribute(pool, attribute, value))
RUNTIME(cudaMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
	cuMemPoolSetAttribute(pool, attribute, value))
RUNTIME(cudaMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *wanted, size_t count),
	cuMemPoolSetAccess(pool, wanted, count))
RUNTIME(cudaMemPoolGetAccess,
	(CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *location),
	cuMemPoolGetAccess(flags, pool, location))
RUNTIME(cudaIpcGetMemHandle, (CUipcMemHandle * handle, void *pointer),
	cuIpcGetMemHandle(handle, AT(pointer)))
RUNTIME(cudaIpcOpenMemHandle, (void **pointer, CUipcMemHandle handle, unsigned int flags),
	cuIpcOpenMemHandle_v2((CUdeviceptr *)pointer, handle, flags))
RUNTIME(cudaIpcCloseMemHandle, (void *pointer), cuIpcCloseMemHandle(AT(pointer)))
#if RUNTIME_MAJOR < 13
RUNTIME(cudaMemAdvise, (const void *pointer, size_t bytes, CUmem_advise advice, int device),
	cuMemAdvise(AT(pointer), bytes, advice, device))
RUNTIME(cudaMemPrefetchAsync, (const void *pointer, size_t bytes, int device, CUstream stream),
	cuMemPrefetchAsync(AT(pointer), bytes, device, stream))
#else
RUNTIME(cudaMemAdvise,
	(const void *pointer, size_t bytes, CUmem_advise advice, CUmemLocation location),
	cuMemAdvise_v2(AT(pointer), bytes, advice, location))
RUNTIME(cudaMemPrefetchAsync,
	(const void *pointer, size_t bytes, CUmemLocation location, unsigned int flags,
		CUstream stream),
	cuMemPrefetchAsync_v2(AT(pointer), bytes, location, flags, stream))
#endif

enum copy_kind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

static CUresult copy(void *to, const void *from, size_t bytes, enum copy_kind kind)
{
	if (!bytes)
		return CUDA_SUCCESS;
	switch (kind) {
	case HOST_TO_DEVICE:
		return cuMemcpyHtoD_v2(AT(to), from, bytes);
	case DEVICE_TO_HOST:
		return cuMemcpyDtoH_v2(to, AT(from), bytes);
	case DEVICE_TO_DEVICE:
		return cuMemcpyDtoD_v2(AT(to), AT(from), bytes);
	case HOST_TO_HOST:
	case BY_ADDRESS:
		return cuMemcpy(AT(to), AT(from), bytes);
	default:
		return (CUresult)21; /* cudaErrorInvalidMemcpyDirection */
	}
}

static CUresult copy_async(
	void *to, const void *from, size_t bytes, enum copy_kind kind, CUstream stream)
{
	if (!bytes)
		return CUDA_SUCCESS;
	switch (kind) {
	case HOST_TO_DEVICE:
		return cuMemcpyHtoDAsync_v2(AT(to), from, bytes, stream);
	case DEVICE_TO_HOST:
		return cuMemcpyDtoHAsync_v2(to, AT(from), bytes, stream);
	case DEVICE_TO_DEVICE:
		return cuMemcpyDtoDAsync_v2(AT(to), AT(from), bytes, stream);
	case HOST_TO_HOST:
	case BY_ADDRESS:
		return cuMemcpyAsync(AT(to), AT(from), bytes, stream);
	default:
		return (CUresult)21; /* cudaErrorInvalidMemcpyDirection */
	}
}

RUNTIME(cudaMemcpy, (void *to, const void *from, size_t bytes, enum copy_kind kind),
	copy(to, from, bytes, kind))
RUNTIME(cudaMemcpyAsync,
	(void *to, const void *from, size_t bytes, enum copy_kind kind, CUstream stream),
	copy_async(to, from, bytes, kind, stream))

static CUresult peer_contexts(int to, int from, CUcontext *ret_to, CUcontext *ret_from)
{
	CUresult result = cuDevicePrimaryCtxRetain(ret_to, to);

	if (result != CUDA_SUCCESS)
		return result;
	cuDevicePrimaryCtxRelease_v2(to);
	result = cuDevicePrimaryCtxRetain(ret_from, from);
	if (result == CUDA_SUCCESS)
		cuDevicePrimaryCtxRelease_v2(from);
	return result;
}

static CUresult copy_peer(
	void *to, int to_device, const void *from, int from_device, size_t bytes, CUstream stream)
{
	CUcontext to_context, from_context;
	CUresult result = peer_contexts(to_device, from_device, &to_context, &from_context);

	return result == CUDA_SUCCESS ? cuMemcpyPeerAsync(AT(to), to_context, AT(from),
						from_context, bytes, stream)
				      : result;
}

RUNTIME(cudaMemcpyPeerAsync,
	(void *to, int to_device, const void *from, int from_device, size_t bytes, CUstream stream),
	copy_peer(to, to_device, from, from_device, bytes, stream))
RUNTIME(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes),
	copy_peer(to, to_device, from, from_device, bytes, NULL))

/* Which side an address is on is for the driver to see: all memory has one address space. */
static CUDA_MEMCPY2D plane(
	void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
	return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = AT(from),
		.srcPitch = from_pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = AT(to),
		.dstPitch = to_pitch,
		.WidthInBytes = width,
		.Height = height};
}

static CUresult copy_plane(
	void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
	CUDA_MEMCPY2D request = plane(to, to_pitch, from, from_pitch, width, height);

	return cuMemcpy2D_v2(&request);
}

static CUresult copy_plane_async(void *to, size_t to_pitch, const void *from, size_t from_pitch,
	size_t width, size_t height, CUstream stream)
{
	CUDA_MEMCPY2D request = plane(to, to_pitch, from, from_pitch, width, height);

	return cuMemcpy2DAsync_v2(&request, stream);
}

RUNTIME(cudaMemcpy2D,
	(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		size_t height, enum copy_kind kind),
	((void)kind, copy_plane(to, to_pitch, from, from_pitch, width, height)))
RUNTIME(cudaMemcpy2DAsync,
	(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		size_t height, enum copy_kind kind, CUstream stream),
	((void)kind, copy_plane_async(to, to_pitch, from, from_pitch, width, height, stream)))

RUNTIME(cudaMemset, (void *pointer, int value, size_t bytes),
	bytes ? cuMemsetD8_v2(AT(pointer), (unsigned char)value, bytes) : CUDA_SUCCESS)
RUNTIME(cudaMemsetAsync, (void *pointer, int value, size_t bytes, CUstream stream),
	bytes ? cuMemsetD8Async(AT(pointer), (unsigned char)value, bytes, stream) : CUDA_SUCCESS)
RUNTIME(cudaMemset2D, (void *pointer, size_t pitch, int value, size_t width, size_t height),
	cuMemsetD2D8_v2(AT(pointer), pitch, (unsigned char)value, width, height))
RUNTIME(cudaMemset2DAsync,
	(void *pointer, size_t pitch, int value, size_t width, size_t height, CUstream stream),
	cuMemsetD2D8Async(AT(pointer), pitch, (unsigned char)value, width, height, stream))

static CUresult copy_symbol(
	const void *symbol, void *other, size_t bytes, size_t offset, CUstream stream, bool is_to)
{
	CUdeviceptr address;
	size_t size;
	CUresult result = runtime_find_variable(symbol, &address, &size);

	if (result != CUDA_SUCCESS)
		return result;
	if (offset > size || bytes > size - offset)
		return CUDA_ERROR_INVALID_VALUE;
	address += offset;
	return is_to ? cuMemcpyAsync(address, AT(other), bytes, stream)
		     : cuMemcpyAsync(AT(other), address, bytes, stream);
}

RUNTIME(cudaMemcpyToSymbol,
	(const void *symbol, const void *from, size_t bytes, size_t offset, enum copy_kind kind),
	((void)kind, copy_symbol(symbol, (void *)(uintptr_t)from, bytes, offset, NULL, true)))
RUNTIME(cudaMemcpyToSymbolAsync,
	(const void *symbol, const void *from, size_t bytes, size_t offset, enum copy_kind kind,
		CUstream stream),
	((void)kind, copy_symbol(symbol, (void *)(uintptr_t)from, bytes, offset, stream, true)))
RUNTIME(cudaMemcpyFromSymbol,
	(void *to, const void *symbol, size_t bytes, size_t offset, enum copy_kind kind),
	((void)kind, copy_symbol(symbol, to, bytes, offset, NULL, false)))
RUNTIME(cudaMemcpyFromSymbolAsync,
	(void *to, const void *symbol, size_t bytes, size_t offset, enum copy_kind kind,
		CUstream stream),
	((void)kind, copy_symbol(symbol, to, bytes, offset, stream, false)))

/* cudaPointerAttributes; what CUDA 13 reserves behind stays as it is. */
struct pointer_attributes {
	int type;
	int device;
	void *device_pointer, *host_pointer;
};

enum { MEMORY_UNREGISTERED, MEMORY_HOST, MEMORY_DEVICE, MEMORY_MANAGED };
#define NO_DEVICE (-2)

static CUresult read_pointer(struct pointer_attributes *ret_attributes, const void *pointer)
{
	struct pointer_attributes found = {
		.device = NO_DEVICE, .host_pointer = (void *)(uintptr_t)pointer};
	unsigned int type = 0, is_managed = 0;

	if (!ret_attributes)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_attributes = found;
	if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, AT(pointer)) !=
		CUDA_SUCCESS)
		return CUDA_SUCCESS;
	cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, AT(pointer));
	cuPointerGetAttribute(&found.device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, AT(pointer));
	cuPointerGetAttribute(
		&found.device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, AT(pointer));
	found.host_pointer = NULL;
	cuPointerGetAttribute(&found.host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, AT(pointer));
	found.type = is_managed			  ? MEMORY_MANAGED
		     : type == CU_MEMORYTYPE_HOST ? MEMORY_HOST
						  : MEMORY_DEVICE;
	*ret_attributes = found;
	return CUDA_SUCCESS;
}

RUNTIME(cudaPointerGetAttributes, (struct pointer_attributes * attributes, const void *pointer),
	read_pointer(attributes, pointer))
