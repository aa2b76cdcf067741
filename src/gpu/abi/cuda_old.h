/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of CUDA 2 and 3 that drivers still export: types and function types. Included by gpu/abi/cuda.h only. */
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
