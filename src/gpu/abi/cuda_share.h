/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with other processes and other interfaces: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

typedef struct CUmemFabricHandle_st {
	unsigned char data[64];
} CUmemFabricHandle;

typedef enum CUipcMem_flags_enum {
	CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
} CUipcMem_flags;

typedef enum CUmemRangeHandleType_enum {
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
} CUmemRangeHandleType;

typedef struct CUextMemory_st *CUexternalMemory;

typedef enum CUexternalMemoryHandleType_enum {
	CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8,
	CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9,
} CUexternalMemoryHandleType;

typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st {
	CUexternalMemoryHandleType type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciBufObject;
	} handle;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
_Static_assert(sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) == 104, "external memory handle");

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st {
	unsigned long long offset;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
_Static_assert(sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC) == 88, "external memory buffer");

typedef CUresult cuIpcGetEventHandle_fn(CUipcEventHandle *handle, CUevent event);
typedef CUresult cuIpcOpenEventHandle_fn(CUevent *event, CUipcEventHandle handle);
typedef CUresult cuIpcGetMemHandle_fn(CUipcMemHandle *handle, CUdeviceptr dptr);
typedef CUresult cuIpcOpenMemHandle_fn(
	CUdeviceptr *dptr, CUipcMemHandle handle, unsigned int flags);
typedef cuIpcOpenMemHandle_fn cuIpcOpenMemHandle_v2_fn;
typedef CUresult cuIpcCloseMemHandle_fn(CUdeviceptr dptr);
typedef CUresult cuMemPoolExportToShareableHandle_fn(
	void *handle, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags);
typedef CUresult cuMemPoolImportFromShareableHandle_fn(
	CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type, unsigned long long flags);
typedef CUresult cuMemPoolExportPointer_fn(CUmemPoolPtrExportData *data, CUdeviceptr dptr);
typedef CUresult cuMemPoolImportPointer_fn(
	CUdeviceptr *dptr, CUmemoryPool pool, CUmemPoolPtrExportData *data);
typedef CUresult cuImportExternalMemory_fn(
	CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description);
typedef CUresult cuExternalMemoryGetMappedBuffer_fn(CUdeviceptr *dptr, CUexternalMemory memory,
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description);
typedef CUresult cuDestroyExternalMemory_fn(CUexternalMemory memory);
typedef CUresult cuMemGetHandleForAddressRange_fn(void *handle, CUdeviceptr dptr, size_t size,
	CUmemRangeHandleType type, unsigned long long flags);
