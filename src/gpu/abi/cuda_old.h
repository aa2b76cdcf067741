/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interfaces of CUDA 2 and 3 that drivers still export: types and function types. Included by
 * gpu/abi/cuda.h only.
 */
#pragma once

typedef struct CUtexref_st *CUtexref;

/* One launch of cuLaunchCooperativeKernelMultiDevice. */
typedef struct CUDA_LAUNCH_PARAMS_st {
	CUfunction function;
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	void **kernelParams;
} CUDA_LAUNCH_PARAMS;
_Static_assert(sizeof(CUDA_LAUNCH_PARAMS) == 56, "CUDA_LAUNCH_PARAMS");

/* Launches */
typedef CUresult cuLaunchCooperativeKernelMultiDevice_fn(
	CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags);
typedef CUresult cuLaunch_fn(CUfunction function);
typedef CUresult cuLaunchGrid_fn(CUfunction function, int width, int height);
typedef CUresult cuLaunchGridAsync_fn(CUfunction function, int width, int height, CUstream stream);
typedef CUresult cuFuncSetBlockShape_fn(CUfunction function, int x, int y, int z);
typedef CUresult cuFuncSetSharedSize_fn(CUfunction function, unsigned int bytes);
typedef CUresult cuParamSetSize_fn(CUfunction function, unsigned int bytes);
typedef CUresult cuParamSeti_fn(CUfunction function, int offset, unsigned int value);
typedef CUresult cuParamSetf_fn(CUfunction function, int offset, float value);
typedef CUresult cuParamSetv_fn(CUfunction function, int offset, void *value, unsigned int bytes);
typedef CUresult cuParamSetTexRef_fn(CUfunction function, int unit, CUtexref reference);

/* Copies and fills */
typedef CUresult cuMemcpy2D_fn(const CUDA_MEMCPY2D_v1 *request);
typedef cuMemcpy2D_fn cuMemcpy2DUnaligned_fn;
typedef CUresult cuMemcpy2DAsync_fn(const CUDA_MEMCPY2D_v1 *request, CUstream stream);
typedef CUresult cuMemcpy3D_fn(const CUDA_MEMCPY3D_v1 *request);
typedef CUresult cuMemcpy3DAsync_fn(const CUDA_MEMCPY3D_v1 *request, CUstream stream);
typedef CUresult cuMemsetD2D8_fn(CUdeviceptr_v1 dst, unsigned int pitch, unsigned char value,
	unsigned int width, unsigned int height);
typedef CUresult cuMemsetD2D16_fn(CUdeviceptr_v1 dst, unsigned int pitch, unsigned short value,
	unsigned int width, unsigned int height);
typedef CUresult cuMemsetD2D32_fn(CUdeviceptr_v1 dst, unsigned int pitch, unsigned int value,
	unsigned int width, unsigned int height);

/* Devices */
typedef struct CUdevprop_st {
	int maxThreadsPerBlock;
	int maxThreadsDim[3];
	int maxGridSize[3];
	int sharedMemPerBlock;
	int totalConstantMemory;
	int SIMDWidth;
	int memPitch;
	int regsPerBlock;
	int clockRate;
	int textureAlign;
} CUdevprop;
_Static_assert(sizeof(CUdevprop) == 56, "CUdevprop");

typedef CUresult cuDeviceGetProperties_fn(CUdevprop *properties, CUdevice device);

/* Arrays with sizes of 32 bits */
typedef CUresult cuArrayCreate_fn(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor);
typedef CUresult cuArrayGetDescriptor_fn(CUDA_ARRAY_DESCRIPTOR_v1 *descriptor, CUarray array);
typedef CUresult cuArray3DCreate_fn(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor);
typedef CUresult cuArray3DGetDescriptor_fn(CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor, CUarray array);
