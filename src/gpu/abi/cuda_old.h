/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of CUDA 2 and 3 that drivers still export: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

/* Arrays with sizes of 32 bits */
typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st {
	unsigned int Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR_v1) == 16, "CUDA_ARRAY_DESCRIPTOR_v1");

typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
	unsigned int Width, Height, Depth;
	CUarray_format Format;
	unsigned int NumChannels;
	unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR_v1) == 24, "CUDA_ARRAY3D_DESCRIPTOR_v1");

typedef CUresult cuArrayCreate_fn(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor);
typedef CUresult cuArrayGetDescriptor_fn(CUDA_ARRAY_DESCRIPTOR_v1 *descriptor, CUarray array);
typedef CUresult cuArray3DCreate_fn(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor);
typedef CUresult cuArray3DGetDescriptor_fn(CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor, CUarray array);
