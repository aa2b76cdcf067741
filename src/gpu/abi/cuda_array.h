/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and mipmapped arrays: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

typedef enum CUarray_format_enum {
	CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
	CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
	CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
	CU_AD_FORMAT_SIGNED_INT8 = 0x08,
	CU_AD_FORMAT_SIGNED_INT16 = 0x09,
	CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
	CU_AD_FORMAT_HALF = 0x10,
	CU_AD_FORMAT_FLOAT = 0x20,
} CUarray_format;

#define CUDA_ARRAY3D_LAYERED		 0x01
#define CUDA_ARRAY3D_SURFACE_LDST	 0x02
#define CUDA_ARRAY3D_CUBEMAP		 0x04
#define CUDA_ARRAY3D_TEXTURE_GATHER	 0x08
#define CUDA_ARRAY3D_DEPTH_TEXTURE	 0x10
#define CUDA_ARRAY3D_COLOR_ATTACHMENT	 0x20
#define CUDA_ARRAY3D_SPARSE		 0x40
#define CUDA_ARRAY3D_DEFERRED_MAPPING	 0x80
#define CUDA_ARRAY3D_VIDEO_ENCODE_DECODE 0x100

typedef struct CUDA_ARRAY_DESCRIPTOR_st {
	size_t Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24, "CUDA_ARRAY_DESCRIPTOR");

typedef struct CUDA_ARRAY3D_DESCRIPTOR_st {
	size_t Width, Height, Depth;
	CUarray_format Format;
	unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "CUDA_ARRAY3D_DESCRIPTOR");

/* Of the interfaces of CUDA 2 */
typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st {
	unsigned int Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR_v1) == 16, "CUDA_ARRAY_DESCRIPTOR_v1");

typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
	unsigned int Width, Height, Depth;
	CUarray_format Format;
	unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR_v1) == 24, "CUDA_ARRAY3D_DESCRIPTOR_v1");

typedef struct CUDA_ARRAY_MEMORY_REQUIREMENTS_st {
	size_t size, alignment;
	unsigned int reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;
_Static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32, "CUDA_ARRAY_MEMORY_REQUIREMENTS");

typedef struct CUDA_ARRAY_SPARSE_PROPERTIES_st {
	struct {
		unsigned int width, height, depth;
	} tileExtent;
	unsigned int miptailFirstLevel;
	unsigned long long miptailSize;
	unsigned int flags;
	unsigned int reserved[4];
} CUDA_ARRAY_SPARSE_PROPERTIES;
_Static_assert(sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) == 48, "CUDA_ARRAY_SPARSE_PROPERTIES");

typedef enum CUresourcetype_enum {
	CU_RESOURCE_TYPE_ARRAY = 0,
	CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
} CUresourcetype;

typedef enum CUarraySparseSubresourceType_enum {
	CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0,
	CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1,
} CUarraySparseSubresourceType;

typedef enum CUmemOperationType_enum {
	CU_MEM_OPERATION_TYPE_MAP = 1,
	CU_MEM_OPERATION_TYPE_UNMAP = 2,
} CUmemOperationType;

typedef enum CUmemHandleType_enum { CU_MEM_HANDLE_TYPE_GENERIC = 0 } CUmemHandleType;

typedef struct CUarrayMapInfo_st {
	CUresourcetype resourceType;
	union {
		CUmipmappedArray mipmap;
		CUarray array;
	} resource;
	CUarraySparseSubresourceType subresourceType;
	union {
		struct {
			unsigned int level, layer;
			unsigned int offsetX, offsetY, offsetZ;
			unsigned int extentWidth, extentHeight, extentDepth;
		} sparseLevel;
		struct {
			unsigned int layer;
			unsigned long long offset, size;
		} miptail;
	} subresource;
	CUmemOperationType memOperationType;
	CUmemHandleType memHandleType;
	union {
		CUmemGenericAllocationHandle memHandle;
	} memHandle;
	unsigned long long offset;
	unsigned int deviceBitMask;
	unsigned int flags;
	unsigned int reserved[2];
} CUarrayMapInfo;
_Static_assert(sizeof(CUarrayMapInfo) == 96, "CUarrayMapInfo");
_Static_assert(offsetof(CUarrayMapInfo, memHandle) == 64, "CUarrayMapInfo.memHandle");

typedef CUresult cuArrayCreate_v2_fn(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor);
typedef CUresult cuArrayGetDescriptor_v2_fn(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array);
typedef CUresult cuArray3DCreate_v2_fn(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
typedef CUresult cuArray3DGetDescriptor_v2_fn(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array);
typedef CUresult cuArrayDestroy_fn(CUarray array);
typedef CUresult cuArrayGetMemoryRequirements_fn(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array, CUdevice device);
typedef CUresult cuArrayGetSparseProperties_fn(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray array);
typedef CUresult cuMipmappedArrayCreate_fn(CUmipmappedArray *mipmap,
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int level_count);
typedef CUresult cuMipmappedArrayDestroy_fn(CUmipmappedArray mipmap);
typedef CUresult cuMipmappedArrayGetLevel_fn(
	CUarray *array, CUmipmappedArray mipmap, unsigned int level);
typedef CUresult cuMipmappedArrayGetMemoryRequirements_fn(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUmipmappedArray mipmap, CUdevice device);
typedef CUresult cuMipmappedArrayGetSparseProperties_fn(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUmipmappedArray mipmap);
typedef CUresult cuMemMapArrayAsync_fn(CUarrayMapInfo *list, unsigned int count, CUstream stream);
typedef cuMemMapArrayAsync_fn cuMemMapArrayAsync_ptsz_fn;
