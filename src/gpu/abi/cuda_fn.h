/* SPDX-License-Identifier: Apache-2.0 */
/* Function types of the CUDA driver: one for each exported symbol that we know. */
#pragma once

/*
 * Included by gpu/abi/cuda.h only. A symbol is named with its suffix: cuMemAlloc is the interface
 * of CUDA 2.0, cuMemAlloc_v2 the one that programs mean today. _ptds and _ptsz are the forms in
 * which stream 0 is the calling thread's own.
 */

typedef CUresult cuInit_fn(unsigned int flags);
typedef CUresult cuDriverGetVersion_fn(int *version);
typedef CUresult cuGetErrorName_fn(CUresult error, const char **name);
typedef CUresult cuGetErrorString_fn(CUresult error, const char **text);
typedef CUresult cuGetProcAddress_fn(const char *symbol, void **pfn, int version, cuuint64_t flags);
typedef CUresult cuGetProcAddress_v2_fn(const char *symbol, void **pfn, int version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status);
typedef CUresult cuGetExportTable_fn(const void **table, const CUuuid *id);
typedef CUresult cuProfilerStart_fn(void);
typedef CUresult cuProfilerStop_fn(void);

/* Devices */
typedef CUresult cuDeviceGet_fn(CUdevice *device, int ordinal);
typedef CUresult cuDeviceGetCount_fn(int *count);
typedef CUresult cuDeviceGetName_fn(char *name, int size, CUdevice device);
typedef CUresult cuDeviceGetAttribute_fn(int *value, CUdevice_attribute attribute, CUdevice device);
typedef CUresult cuDeviceTotalMem_fn(unsigned int *bytes, CUdevice device);
typedef CUresult cuDeviceTotalMem_v2_fn(size_t *bytes, CUdevice device);
typedef CUresult cuDeviceGetUuid_fn(CUuuid *uuid, CUdevice device);
typedef cuDeviceGetUuid_fn cuDeviceGetUuid_v2_fn;
typedef CUresult cuDeviceGetPCIBusId_fn(char *bus_id, int size, CUdevice device);
typedef CUresult cuDeviceGetByPCIBusId_fn(CUdevice *device, const char *bus_id);
typedef CUresult cuDeviceComputeCapability_fn(int *major, int *minor, CUdevice device);
typedef CUresult cuDeviceGetDefaultMemPool_fn(CUmemoryPool *pool, CUdevice device);
typedef CUresult cuDeviceGetMemPool_fn(CUmemoryPool *pool, CUdevice device);
typedef CUresult cuDeviceSetMemPool_fn(CUdevice device, CUmemoryPool pool);
typedef CUresult cuDeviceCanAccessPeer_fn(int *can_access, CUdevice device, CUdevice peer);
typedef CUresult cuDeviceGetP2PAttribute_fn(
	int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice destination);

/* Contexts */
typedef CUresult cuDevicePrimaryCtxRetain_fn(CUcontext *context, CUdevice device);
typedef CUresult cuDevicePrimaryCtxRelease_fn(CUdevice device);
typedef cuDevicePrimaryCtxRelease_fn cuDevicePrimaryCtxRelease_v2_fn;
typedef CUresult cuDevicePrimaryCtxReset_fn(CUdevice device);
typedef cuDevicePrimaryCtxReset_fn cuDevicePrimaryCtxReset_v2_fn;
typedef CUresult cuDevicePrimaryCtxGetState_fn(CUdevice device, unsigned int *flags, int *active);
typedef CUresult cuDevicePrimaryCtxSetFlags_fn(CUdevice device, unsigned int flags);
typedef cuDevicePrimaryCtxSetFlags_fn cuDevicePrimaryCtxSetFlags_v2_fn;
typedef CUresult cuCtxCreate_fn(CUcontext *context, unsigned int flags, CUdevice device);
typedef cuCtxCreate_fn cuCtxCreate_v2_fn;
typedef cuCtxCreate_fn cuGLCtxCreate_fn;
typedef cuCtxCreate_fn cuGLCtxCreate_v2_fn;
typedef CUresult cuVDPAUCtxCreate_fn(CUcontext *context, unsigned int flags, CUdevice device,
	unsigned int vdp_device, void *get_proc_address);
typedef cuVDPAUCtxCreate_fn cuVDPAUCtxCreate_v2_fn;
typedef CUresult cuCtxCreate_v3_fn(CUcontext *context, CUexecAffinityParam *params, int count,
	unsigned int flags, CUdevice device);
typedef CUresult cuCtxCreate_v4_fn(
	CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device);
typedef CUresult cuCtxDestroy_fn(CUcontext context);
typedef cuCtxDestroy_fn cuCtxDestroy_v2_fn;
typedef CUresult cuCtxAttach_fn(CUcontext *context, unsigned int flags);
typedef CUresult cuCtxDetach_fn(CUcontext context);
typedef CUresult cuCtxResetPersistingL2Cache_fn(void);
typedef CUresult cuCtxGetCurrent_fn(CUcontext *context);
typedef CUresult cuCtxSetCurrent_fn(CUcontext context);
typedef CUresult cuCtxPushCurrent_fn(CUcontext context);
typedef cuCtxPushCurrent_fn cuCtxPushCurrent_v2_fn;
typedef CUresult cuCtxPopCurrent_fn(CUcontext *context);
typedef cuCtxPopCurrent_fn cuCtxPopCurrent_v2_fn;
typedef CUresult cuCtxGetDevice_fn(CUdevice *device);
typedef CUresult cuCtxGetDevice_v2_fn(CUdevice *device, CUcontext context);
typedef CUresult cuCtxSynchronize_fn(void);
typedef CUresult cuCtxSynchronize_v2_fn(CUcontext context);
typedef CUresult cuCtxGetFlags_fn(unsigned int *flags);
typedef CUresult cuCtxSetFlags_fn(unsigned int flags);
typedef CUresult cuCtxGetId_fn(CUcontext context, unsigned long long *id);
typedef CUresult cuCtxGetApiVersion_fn(CUcontext context, unsigned int *version);
typedef CUresult cuCtxGetLimit_fn(size_t *value, CUlimit limit);
typedef CUresult cuCtxSetLimit_fn(CUlimit limit, size_t value);
typedef CUresult cuCtxGetCacheConfig_fn(CUfunc_cache *config);
typedef CUresult cuCtxSetCacheConfig_fn(CUfunc_cache config);
typedef CUresult cuCtxGetSharedMemConfig_fn(CUsharedconfig *config);
typedef CUresult cuCtxSetSharedMemConfig_fn(CUsharedconfig config);
typedef CUresult cuCtxGetStreamPriorityRange_fn(int *least, int *greatest);
typedef CUresult cuCtxEnablePeerAccess_fn(CUcontext peer, unsigned int flags);
typedef CUresult cuCtxDisablePeerAccess_fn(CUcontext peer);

/* Linear memory */
typedef CUresult cuMemAlloc_fn(CUdeviceptr_v1 *dptr, unsigned int bytesize);
typedef CUresult cuMemAlloc_v2_fn(CUdeviceptr *dptr, size_t bytesize);
typedef CUresult cuMemAllocPitch_fn(CUdeviceptr_v1 *dptr, unsigned int *pitch, unsigned int width,
	unsigned int height, unsigned int element_bytes);
typedef CUresult cuMemAllocPitch_v2_fn(
	CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height, unsigned int element_bytes);
typedef CUresult cuMemAllocManaged_fn(CUdeviceptr *dptr, size_t bytesize, unsigned int flags);
typedef CUresult cuMemFree_fn(CUdeviceptr_v1 dptr);
typedef CUresult cuMemFree_v2_fn(CUdeviceptr dptr);
typedef CUresult cuMemGetInfo_fn(unsigned int *free_bytes, unsigned int *total_bytes);
typedef CUresult cuMemGetInfo_v2_fn(size_t *free_bytes, size_t *total_bytes);
typedef CUresult cuMemGetAddressRange_fn(
	CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 dptr);
typedef CUresult cuMemGetAddressRange_v2_fn(CUdeviceptr *base, size_t *size, CUdeviceptr dptr);
typedef CUresult cuMemAllocHost_fn(void **pointer, unsigned int bytesize);
typedef CUresult cuMemAllocHost_v2_fn(void **pointer, size_t bytesize);
typedef CUresult cuMemHostAlloc_fn(void **pointer, size_t bytesize, unsigned int flags);
typedef CUresult cuMemFreeHost_fn(void *pointer);
typedef CUresult cuMemHostRegister_fn(void *pointer, size_t bytesize, unsigned int flags);
typedef cuMemHostRegister_fn cuMemHostRegister_v2_fn;
typedef CUresult cuMemHostUnregister_fn(void *pointer);
typedef CUresult cuMemHostGetDevicePointer_fn(CUdeviceptr_v1 *dptr, void *p, unsigned int flags);
typedef CUresult cuMemHostGetDevicePointer_v2_fn(CUdeviceptr *dptr, void *p, unsigned int flags);
typedef CUresult cuMemHostGetFlags_fn(unsigned int *flags, void *pointer);
typedef CUresult cuPointerGetAttribute_fn(
	void *data, CUpointer_attribute attribute, CUdeviceptr dptr);
typedef CUresult cuPointerGetAttributes_fn(
	unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr dptr);
typedef CUresult cuPointerSetAttribute_fn(
	const void *value, CUpointer_attribute attribute, CUdeviceptr dptr);
typedef CUresult cuMemPrefetchAsync_fn(
	CUdeviceptr dptr, size_t count, CUdevice device, CUstream stream);
typedef cuMemPrefetchAsync_fn cuMemPrefetchAsync_ptsz_fn;
typedef CUresult cuMemPrefetchAsync_v2_fn(CUdeviceptr dptr, size_t count, CUmemLocation location,
	unsigned int flags, CUstream stream);
typedef cuMemPrefetchAsync_v2_fn cuMemPrefetchAsync_v2_ptsz_fn;
typedef CUresult cuMemAdvise_fn(
	CUdeviceptr dptr, size_t count, CUmem_advise advice, CUdevice device);
typedef CUresult cuMemAdvise_v2_fn(
	CUdeviceptr dptr, size_t count, CUmem_advise advice, CUmemLocation location);

/* Copies */
typedef CUresult cuMemcpy_fn(CUdeviceptr dst, CUdeviceptr src, size_t count);
typedef cuMemcpy_fn cuMemcpy_ptds_fn;
typedef CUresult cuMemcpyAsync_fn(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream);
typedef cuMemcpyAsync_fn cuMemcpyAsync_ptsz_fn;
typedef CUresult cuMemcpyPeer_fn(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
	CUcontext src_context, size_t count);
typedef cuMemcpyPeer_fn cuMemcpyPeer_ptds_fn;
typedef CUresult cuMemcpyPeerAsync_fn(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
	CUcontext src_context, size_t count, CUstream stream);
typedef cuMemcpyPeerAsync_fn cuMemcpyPeerAsync_ptsz_fn;
typedef CUresult cuMemcpyHtoD_fn(CUdeviceptr_v1 dst, const void *src, unsigned int count);
typedef CUresult cuMemcpyHtoD_v2_fn(CUdeviceptr dst, const void *src, size_t count);
typedef cuMemcpyHtoD_v2_fn cuMemcpyHtoD_v2_ptds_fn;
typedef CUresult cuMemcpyHtoDAsync_fn(
	CUdeviceptr_v1 dst, const void *src, unsigned int count, CUstream stream);
typedef CUresult cuMemcpyHtoDAsync_v2_fn(
	CUdeviceptr dst, const void *src, size_t count, CUstream stream);
typedef cuMemcpyHtoDAsync_v2_fn cuMemcpyHtoDAsync_v2_ptsz_fn;
typedef CUresult cuMemcpyDtoH_fn(void *dst, CUdeviceptr_v1 src, unsigned int count);
typedef CUresult cuMemcpyDtoH_v2_fn(void *dst, CUdeviceptr src, size_t count);
typedef cuMemcpyDtoH_v2_fn cuMemcpyDtoH_v2_ptds_fn;
typedef CUresult cuMemcpyDtoHAsync_fn(
	void *dst, CUdeviceptr_v1 src, unsigned int count, CUstream stream);
typedef CUresult cuMemcpyDtoHAsync_v2_fn(void *dst, CUdeviceptr src, size_t count, CUstream stream);
typedef cuMemcpyDtoHAsync_v2_fn cuMemcpyDtoHAsync_v2_ptsz_fn;
typedef CUresult cuMemcpyDtoD_fn(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int count);
typedef CUresult cuMemcpyDtoD_v2_fn(CUdeviceptr dst, CUdeviceptr src, size_t count);
typedef cuMemcpyDtoD_v2_fn cuMemcpyDtoD_v2_ptds_fn;
typedef CUresult cuMemcpyDtoDAsync_fn(
	CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int count, CUstream stream);
typedef CUresult cuMemcpyDtoDAsync_v2_fn(
	CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream);
typedef cuMemcpyDtoDAsync_v2_fn cuMemcpyDtoDAsync_v2_ptsz_fn;
typedef CUresult cuMemcpy2D_v2_fn(const CUDA_MEMCPY2D *copy);
typedef cuMemcpy2D_v2_fn cuMemcpy2D_v2_ptds_fn;
typedef cuMemcpy2D_v2_fn cuMemcpy2DUnaligned_v2_fn;
typedef cuMemcpy2D_v2_fn cuMemcpy2DUnaligned_v2_ptds_fn;
typedef CUresult cuMemcpy2DAsync_v2_fn(const CUDA_MEMCPY2D *copy, CUstream stream);
typedef cuMemcpy2DAsync_v2_fn cuMemcpy2DAsync_v2_ptsz_fn;
typedef CUresult cuMemcpy3D_v2_fn(const CUDA_MEMCPY3D *copy);
typedef cuMemcpy3D_v2_fn cuMemcpy3D_v2_ptds_fn;
typedef CUresult cuMemcpy3DAsync_v2_fn(const CUDA_MEMCPY3D *copy, CUstream stream);
typedef cuMemcpy3DAsync_v2_fn cuMemcpy3DAsync_v2_ptsz_fn;
typedef CUresult cuMemcpy3DPeer_fn(const CUDA_MEMCPY3D_PEER *copy);
typedef cuMemcpy3DPeer_fn cuMemcpy3DPeer_ptds_fn;
typedef CUresult cuMemcpy3DPeerAsync_fn(const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
typedef cuMemcpy3DPeerAsync_fn cuMemcpy3DPeerAsync_ptsz_fn;

/* Fills */
typedef CUresult cuMemsetD8_fn(CUdeviceptr_v1 dst, unsigned char value, unsigned int count);
typedef CUresult cuMemsetD8_v2_fn(CUdeviceptr dst, unsigned char value, size_t count);
typedef cuMemsetD8_v2_fn cuMemsetD8_v2_ptds_fn;
typedef CUresult cuMemsetD8Async_fn(
	CUdeviceptr dst, unsigned char value, size_t count, CUstream stream);
typedef cuMemsetD8Async_fn cuMemsetD8Async_ptsz_fn;
typedef CUresult cuMemsetD16_fn(CUdeviceptr_v1 dst, unsigned short value, unsigned int count);
typedef CUresult cuMemsetD16_v2_fn(CUdeviceptr dst, unsigned short value, size_t count);
typedef cuMemsetD16_v2_fn cuMemsetD16_v2_ptds_fn;
typedef CUresult cuMemsetD16Async_fn(
	CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
typedef cuMemsetD16Async_fn cuMemsetD16Async_ptsz_fn;
typedef CUresult cuMemsetD32_fn(CUdeviceptr_v1 dst, unsigned int value, unsigned int count);
typedef CUresult cuMemsetD32_v2_fn(CUdeviceptr dst, unsigned int value, size_t count);
typedef cuMemsetD32_v2_fn cuMemsetD32_v2_ptds_fn;
typedef CUresult cuMemsetD32Async_fn(
	CUdeviceptr dst, unsigned int value, size_t count, CUstream stream);
typedef cuMemsetD32Async_fn cuMemsetD32Async_ptsz_fn;
typedef CUresult cuMemsetD2D8_v2_fn(
	CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height);
typedef cuMemsetD2D8_v2_fn cuMemsetD2D8_v2_ptds_fn;
typedef CUresult cuMemsetD2D8Async_fn(CUdeviceptr dst, size_t pitch, unsigned char value,
	size_t width, size_t height, CUstream stream);
typedef cuMemsetD2D8Async_fn cuMemsetD2D8Async_ptsz_fn;
typedef CUresult cuMemsetD2D16_v2_fn(
	CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height);
typedef cuMemsetD2D16_v2_fn cuMemsetD2D16_v2_ptds_fn;
typedef CUresult cuMemsetD2D16Async_fn(CUdeviceptr dst, size_t pitch, unsigned short value,
	size_t width, size_t height, CUstream stream);
typedef cuMemsetD2D16Async_fn cuMemsetD2D16Async_ptsz_fn;
typedef CUresult cuMemsetD2D32_v2_fn(
	CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height);
typedef cuMemsetD2D32_v2_fn cuMemsetD2D32_v2_ptds_fn;
typedef CUresult cuMemsetD2D32Async_fn(CUdeviceptr dst, size_t pitch, unsigned int value,
	size_t width, size_t height, CUstream stream);
typedef cuMemsetD2D32Async_fn cuMemsetD2D32Async_ptsz_fn;

/* Virtual memory management */
typedef CUresult cuMemAddressReserve_fn(CUdeviceptr *dptr, size_t size, size_t alignment,
	CUdeviceptr address, unsigned long long flags);
typedef CUresult cuMemAddressFree_fn(CUdeviceptr dptr, size_t size);
typedef CUresult cuMemCreate_fn(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags);
typedef CUresult cuMemRelease_fn(CUmemGenericAllocationHandle handle);
typedef CUresult cuMemMap_fn(CUdeviceptr dptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags);
typedef CUresult cuMemUnmap_fn(CUdeviceptr dptr, size_t size);
typedef CUresult cuMemSetAccess_fn(
	CUdeviceptr dptr, size_t size, const CUmemAccessDesc *descriptions, size_t count);
typedef CUresult cuMemGetAccess_fn(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr dptr);
typedef CUresult cuMemGetAllocationGranularity_fn(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option);
typedef CUresult cuMemGetAllocationPropertiesFromHandle_fn(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);
typedef CUresult cuMemRetainAllocationHandle_fn(
	CUmemGenericAllocationHandle *handle, void *address);
typedef CUresult cuMemExportToShareableHandle_fn(void *shareable,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
	unsigned long long flags);
typedef CUresult cuMemImportFromShareableHandle_fn(
	CUmemGenericAllocationHandle *handle, void *os_handle, CUmemAllocationHandleType type);

/* Multicast objects */
typedef CUresult cuMulticastCreate_fn(
	CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop);
typedef CUresult cuMulticastAddDevice_fn(CUmemGenericAllocationHandle handle, CUdevice device);
typedef CUresult cuMulticastBindMem_fn(CUmemGenericAllocationHandle handle, size_t offset,
	CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
	unsigned long long flags);
typedef CUresult cuMulticastBindAddr_fn(CUmemGenericAllocationHandle handle, size_t offset,
	CUdeviceptr memory, size_t size, unsigned long long flags);
typedef CUresult cuMulticastBindMem_v2_fn(CUmemGenericAllocationHandle handle, CUdevice device,
	size_t offset, CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
	unsigned long long flags);
typedef CUresult cuMulticastBindAddr_v2_fn(CUmemGenericAllocationHandle handle, CUdevice device,
	size_t offset, CUdeviceptr memory, size_t size, unsigned long long flags);
typedef CUresult cuMulticastUnbind_fn(
	CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size);
typedef CUresult cuMulticastGetGranularity_fn(size_t *granularity,
	const CUmulticastObjectProp *prop, CUmulticastGranularity_flags option);

/* Stream-ordered memory */
typedef CUresult cuMemAllocAsync_fn(CUdeviceptr *dptr, size_t bytesize, CUstream stream);
typedef cuMemAllocAsync_fn cuMemAllocAsync_ptsz_fn;
typedef CUresult cuMemAllocFromPoolAsync_fn(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream stream);
typedef cuMemAllocFromPoolAsync_fn cuMemAllocFromPoolAsync_ptsz_fn;
typedef CUresult cuMemFreeAsync_fn(CUdeviceptr dptr, CUstream stream);
typedef cuMemFreeAsync_fn cuMemFreeAsync_ptsz_fn;
typedef CUresult cuMemPoolCreate_fn(CUmemoryPool *pool, const CUmemPoolProps *props);
typedef CUresult cuMemPoolDestroy_fn(CUmemoryPool pool);
typedef CUresult cuMemPoolTrimTo_fn(CUmemoryPool pool, size_t keep_bytes);
typedef CUresult cuMemPoolSetAttribute_fn(
	CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
typedef CUresult cuMemPoolGetAttribute_fn(
	CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
typedef CUresult cuMemPoolSetAccess_fn(
	CUmemoryPool pool, const CUmemAccessDesc *descriptions, size_t count);
typedef CUresult cuMemPoolGetAccess_fn(
	CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
typedef CUresult cuMemGetDefaultMemPool_fn(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
typedef CUresult cuMemGetMemPool_fn(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
typedef CUresult cuMemSetMemPool_fn(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);

/* Modules, libraries, functions */
typedef CUresult cuModuleLoad_fn(CUmodule *module, const char *path);
typedef CUresult cuModuleLoadData_fn(CUmodule *module, const void *image);
typedef CUresult cuModuleLoadDataEx_fn(CUmodule *module, const void *image, unsigned int count,
	CUjit_option *options, void **values);
typedef CUresult cuModuleLoadFatBinary_fn(CUmodule *module, const void *image);
typedef CUresult cuModuleUnload_fn(CUmodule module);
typedef CUresult cuModuleGetFunction_fn(CUfunction *function, CUmodule module, const char *name);
typedef CUresult cuModuleGetFunctionCount_fn(unsigned int *count, CUmodule module);
typedef CUresult cuModuleEnumerateFunctions_fn(
	CUfunction *functions, unsigned int most, CUmodule module);
typedef CUresult cuModuleGetGlobal_fn(
	CUdeviceptr_v1 *dptr, unsigned int *size, CUmodule module, const char *name);
typedef CUresult cuModuleGetGlobal_v2_fn(
	CUdeviceptr *dptr, size_t *size, CUmodule module, const char *name);
typedef CUresult cuModuleGetLoadingMode_fn(CUmoduleLoadingMode *mode);
typedef CUresult cuLibraryLoadData_fn(CUlibrary *library, const void *code, CUjit_option *options,
	void **values, unsigned int count, CUlibraryOption *library_options, void **library_values,
	unsigned int library_count);
typedef CUresult cuLibraryLoadFromFile_fn(CUlibrary *library, const char *path,
	CUjit_option *options, void **values, unsigned int count, CUlibraryOption *library_options,
	void **library_values, unsigned int library_count);
typedef CUresult cuLibraryUnload_fn(CUlibrary library);
typedef CUresult cuLibraryGetKernel_fn(CUkernel *kernel, CUlibrary library, const char *name);
typedef CUresult cuLibraryGetKernelCount_fn(unsigned int *count, CUlibrary library);
typedef CUresult cuLibraryGetModule_fn(CUmodule *module, CUlibrary library);
typedef CUresult cuLibraryGetGlobal_fn(
	CUdeviceptr *dptr, size_t *size, CUlibrary library, const char *name);
typedef cuLibraryGetGlobal_fn cuLibraryGetManaged_fn;
typedef CUresult cuLibraryGetUnifiedFunction_fn(
	void **function, CUlibrary library, const char *name);
typedef CUresult cuLibraryEnumerateKernels_fn(
	CUkernel *kernels, unsigned int most, CUlibrary library);
typedef CUresult cuLinkCreate_fn(
	unsigned int count, CUjit_option *options, void **values, CUlinkState *state);
typedef cuLinkCreate_fn cuLinkCreate_v2_fn;
typedef CUresult cuLinkAddData_fn(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
	const char *name, unsigned int count, CUjit_option *options, void **values);
typedef cuLinkAddData_fn cuLinkAddData_v2_fn;
typedef CUresult cuLinkAddFile_fn(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int count, CUjit_option *options, void **values);
typedef cuLinkAddFile_fn cuLinkAddFile_v2_fn;
typedef CUresult cuLinkComplete_fn(CUlinkState state, void **image, size_t *bytes);
typedef CUresult cuLinkDestroy_fn(CUlinkState state);
typedef CUresult cuKernelGetFunction_fn(CUfunction *function, CUkernel kernel);
typedef CUresult cuKernelGetLibrary_fn(CUlibrary *library, CUkernel kernel);
typedef CUresult cuKernelGetName_fn(const char **name, CUkernel kernel);
typedef CUresult cuKernelGetAttribute_fn(
	int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device);
typedef CUresult cuKernelSetAttribute_fn(
	CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device);
typedef CUresult cuFuncGetAttribute_fn(
	int *value, CUfunction_attribute attribute, CUfunction function);
typedef CUresult cuFuncSetAttribute_fn(
	CUfunction function, CUfunction_attribute attribute, int value);
typedef CUresult cuFuncSetCacheConfig_fn(CUfunction function, CUfunc_cache config);
typedef CUresult cuFuncSetSharedMemConfig_fn(CUfunction function, CUsharedconfig config);
typedef CUresult cuKernelGetParamInfo_fn(
	CUkernel kernel, size_t index, size_t *offset, size_t *size);
typedef CUresult cuKernelSetCacheConfig_fn(CUkernel kernel, CUfunc_cache config, CUdevice device);
typedef CUresult cuFuncGetModule_fn(CUmodule *module, CUfunction function);
typedef CUresult cuFuncGetName_fn(const char **name, CUfunction function);
typedef CUresult cuFuncGetParamInfo_fn(
	CUfunction function, size_t index, size_t *offset, size_t *size);
typedef CUresult cuFuncIsLoaded_fn(CUfunctionLoadingState *state, CUfunction function);
typedef CUresult cuFuncLoad_fn(CUfunction function);
typedef CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor_fn(
	int *blocks, CUfunction function, int block_size, size_t shared_bytes);
typedef CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_fn(
	int *blocks, CUfunction function, int block_size, size_t shared_bytes, unsigned int flags);
typedef CUresult cuOccupancyMaxPotentialBlockSize_fn(int *min_grid_size, int *block_size,
	CUfunction function, CUoccupancyB2DSize block_to_shared, size_t shared_bytes,
	int block_size_limit);
typedef CUresult cuOccupancyMaxPotentialBlockSizeWithFlags_fn(int *min_grid_size, int *block_size,
	CUfunction function, CUoccupancyB2DSize block_to_shared, size_t shared_bytes,
	int block_size_limit, unsigned int flags);
typedef CUresult cuOccupancyAvailableDynamicSMemPerBlock_fn(
	size_t *bytes, CUfunction function, int blocks, int block_size);
typedef CUresult cuOccupancyMaxPotentialClusterSize_fn(
	int *size, CUfunction function, const CUlaunchConfig *config);
typedef CUresult cuOccupancyMaxActiveClusters_fn(
	int *count, CUfunction function, const CUlaunchConfig *config);

/* Launches */
typedef CUresult cuLaunchKernel_fn(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra);
typedef cuLaunchKernel_fn cuLaunchKernel_ptsz_fn;
typedef CUresult cuLaunchKernelEx_fn(
	const CUlaunchConfig *config, CUfunction function, void **params, void **extra);
typedef cuLaunchKernelEx_fn cuLaunchKernelEx_ptsz_fn;
typedef CUresult cuLaunchCooperativeKernel_fn(CUfunction function, unsigned int grid_x,
	unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params);
typedef cuLaunchCooperativeKernel_fn cuLaunchCooperativeKernel_ptsz_fn;
typedef CUresult cuLaunchHostFunc_fn(CUstream stream, CUhostFn fn, void *user_data);
typedef cuLaunchHostFunc_fn cuLaunchHostFunc_ptsz_fn;

/* Streams */
typedef CUresult cuStreamCreate_fn(CUstream *stream, unsigned int flags);
typedef CUresult cuStreamCreateWithPriority_fn(CUstream *stream, unsigned int flags, int priority);
typedef CUresult cuStreamDestroy_fn(CUstream stream);
typedef cuStreamDestroy_fn cuStreamDestroy_v2_fn;
typedef CUresult cuStreamSynchronize_fn(CUstream stream);
typedef cuStreamSynchronize_fn cuStreamSynchronize_ptsz_fn;
typedef CUresult cuStreamQuery_fn(CUstream stream);
typedef cuStreamQuery_fn cuStreamQuery_ptsz_fn;
typedef CUresult cuStreamWaitEvent_fn(CUstream stream, CUevent event, unsigned int flags);
typedef cuStreamWaitEvent_fn cuStreamWaitEvent_ptsz_fn;
typedef CUresult cuStreamGetCtx_fn(CUstream stream, CUcontext *context);
typedef cuStreamGetCtx_fn cuStreamGetCtx_ptsz_fn;
typedef CUresult cuStreamGetCtx_v2_fn(CUstream stream, CUcontext *context, CUgreenCtx *green);
typedef cuStreamGetCtx_v2_fn cuStreamGetCtx_v2_ptsz_fn;
typedef CUresult cuStreamGetFlags_fn(CUstream stream, unsigned int *flags);
typedef cuStreamGetFlags_fn cuStreamGetFlags_ptsz_fn;
typedef CUresult cuStreamGetPriority_fn(CUstream stream, int *priority);
typedef cuStreamGetPriority_fn cuStreamGetPriority_ptsz_fn;
typedef CUresult cuStreamGetId_fn(CUstream stream, unsigned long long *id);
typedef cuStreamGetId_fn cuStreamGetId_ptsz_fn;
typedef CUresult cuStreamGetDevice_fn(CUstream stream, CUdevice *device);
typedef cuStreamGetDevice_fn cuStreamGetDevice_ptsz_fn;
typedef CUresult cuStreamAddCallback_fn(
	CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags);
typedef cuStreamAddCallback_fn cuStreamAddCallback_ptsz_fn;
typedef CUresult cuStreamIsCapturing_fn(CUstream stream, CUstreamCaptureStatus *status);
typedef cuStreamIsCapturing_fn cuStreamIsCapturing_ptsz_fn;
typedef CUresult cuStreamBeginCapture_v2_fn(CUstream stream, CUstreamCaptureMode mode);
typedef cuStreamBeginCapture_v2_fn cuStreamBeginCapture_v2_ptsz_fn;
typedef CUresult cuStreamEndCapture_fn(CUstream stream, CUgraph *graph);
typedef cuStreamEndCapture_fn cuStreamEndCapture_ptsz_fn;
typedef CUresult cuThreadExchangeStreamCaptureMode_fn(CUstreamCaptureMode *mode);

/* Events */
typedef CUresult cuEventCreate_fn(CUevent *event, unsigned int flags);
typedef CUresult cuEventDestroy_fn(CUevent event);
typedef cuEventDestroy_fn cuEventDestroy_v2_fn;
typedef CUresult cuEventRecord_fn(CUevent event, CUstream stream);
typedef cuEventRecord_fn cuEventRecord_ptsz_fn;
typedef CUresult cuEventRecordWithFlags_fn(CUevent event, CUstream stream, unsigned int flags);
typedef cuEventRecordWithFlags_fn cuEventRecordWithFlags_ptsz_fn;
typedef CUresult cuEventQuery_fn(CUevent event);
typedef CUresult cuEventSynchronize_fn(CUevent event);
typedef CUresult cuEventElapsedTime_fn(float *ms, CUevent start, CUevent end);
typedef cuEventElapsedTime_fn cuEventElapsedTime_v2_fn;
