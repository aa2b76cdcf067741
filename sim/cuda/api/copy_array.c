/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from or to a place in an array: one row of bytes. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"

static CUDA_MEMCPY3D row_of(size_t bytes)
{
	return (CUDA_MEMCPY3D){.WidthInBytes = bytes, .Height = 1, .Depth = 1};
}

static void to_array(CUDA_MEMCPY3D *row, CUarray array, size_t offset)
{
	row->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	row->dstArray = array;
	row->dstXInBytes = offset;
}

static void from_array(CUDA_MEMCPY3D *row, CUarray array, size_t offset)
{
	row->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	row->srcArray = array;
	row->srcXInBytes = offset;
}

static CUresult copy_dtoa(bool is_thread, CUarray dst, size_t offset, CUdeviceptr src, size_t count)
{
	CUDA_MEMCPY3D row = row_of(count);

	to_array(&row, dst, offset);
	row.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	row.srcDevice = src;
	return submit_copy_3d(NULL, is_thread, true, &row);
}

static CUresult copy_atod(bool is_thread, CUdeviceptr dst, CUarray src, size_t offset, size_t count)
{
	CUDA_MEMCPY3D row = row_of(count);

	from_array(&row, src, offset);
	row.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	row.dstDevice = dst;
	return submit_copy_3d(NULL, is_thread, true, &row);
}

static CUresult copy_atoa(bool is_thread, CUarray dst, size_t dst_offset, CUarray src,
	size_t src_offset, size_t count)
{
	CUDA_MEMCPY3D row = row_of(count);

	to_array(&row, dst, dst_offset);
	from_array(&row, src, src_offset);
	return submit_copy_3d(NULL, is_thread, true, &row);
}

static CUresult copy_htoa(CUstream stream, bool is_thread, bool is_waiting, CUarray dst,
	size_t offset, const void *src, size_t count)
{
	CUDA_MEMCPY3D row = row_of(count);

	to_array(&row, dst, offset);
	row.srcMemoryType = CU_MEMORYTYPE_HOST;
	row.srcHost = src;
	return submit_copy_3d(stream, is_thread, is_waiting, &row);
}

static CUresult copy_atoh(CUstream stream, bool is_thread, bool is_waiting, void *dst, CUarray src,
	size_t offset, size_t count)
{
	CUDA_MEMCPY3D row = row_of(count);

	from_array(&row, src, offset);
	row.dstMemoryType = CU_MEMORYTYPE_HOST;
	row.dstHost = dst;
	return submit_copy_3d(stream, is_thread, is_waiting, &row);
}

ENTRY_FORMS(cuMemcpyDtoA_v2, _ptds, (CUarray dst, size_t dst_offset, CUdeviceptr src, size_t count),
	(dst, dst_offset, src, count))
{
	return copy_dtoa(is_thread, dst, dst_offset, src, count);
}

ENTRY_FORMS(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dst, CUarray src, size_t src_offset, size_t count),
	(dst, src, src_offset, count))
{
	return copy_atod(is_thread, dst, src, src_offset, count);
}

ENTRY_FORMS(cuMemcpyAtoA_v2, _ptds,
	(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t count),
	(dst, dst_offset, src, src_offset, count))
{
	return copy_atoa(is_thread, dst, dst_offset, src, src_offset, count);
}

ENTRY_FORMS(cuMemcpyHtoA_v2, _ptds, (CUarray dst, size_t dst_offset, const void *src, size_t count),
	(dst, dst_offset, src, count))
{
	return copy_htoa(NULL, is_thread, true, dst, dst_offset, src, count);
}

ENTRY_FORMS(cuMemcpyHtoAAsync_v2, _ptsz,
	(CUarray dst, size_t dst_offset, const void *src, size_t count, CUstream stream),
	(dst, dst_offset, src, count, stream))
{
	return copy_htoa(stream, is_thread, false, dst, dst_offset, src, count);
}

ENTRY_FORMS(cuMemcpyAtoH_v2, _ptds, (void *dst, CUarray src, size_t src_offset, size_t count),
	(dst, src, src_offset, count))
{
	return copy_atoh(NULL, is_thread, true, dst, src, src_offset, count);
}

ENTRY_FORMS(cuMemcpyAtoHAsync_v2, _ptsz,
	(void *dst, CUarray src, size_t src_offset, size_t count, CUstream stream),
	(dst, src, src_offset, count, stream))
{
	return copy_atoh(stream, is_thread, false, dst, src, src_offset, count);
}

/* Sizes and device pointers of 32 bits */
ENTRY_BODY(cuMemcpyDtoA,
	(CUarray dst, unsigned int dst_offset, CUdeviceptr_v1 src, unsigned int count),
	(dst, dst_offset, src, count))
{
	return copy_dtoa(false, dst, dst_offset, src, count);
}

ENTRY_BODY(cuMemcpyAtoD,
	(CUdeviceptr_v1 dst, CUarray src, unsigned int src_offset, unsigned int count),
	(dst, src, src_offset, count))
{
	return copy_atod(false, dst, src, src_offset, count);
}

ENTRY_BODY(cuMemcpyAtoA,
	(CUarray dst, unsigned int dst_offset, CUarray src, unsigned int src_offset,
		unsigned int count),
	(dst, dst_offset, src, src_offset, count))
{
	return copy_atoa(false, dst, dst_offset, src, src_offset, count);
}

ENTRY_BODY(cuMemcpyHtoA,
	(CUarray dst, unsigned int dst_offset, const void *src, unsigned int count),
	(dst, dst_offset, src, count))
{
	return copy_htoa(NULL, false, true, dst, dst_offset, src, count);
}

ENTRY_BODY(cuMemcpyHtoAAsync,
	(CUarray dst, unsigned int dst_offset, const void *src, unsigned int count,
		CUstream stream),
	(dst, dst_offset, src, count, stream))
{
	return copy_htoa(stream, false, false, dst, dst_offset, src, count);
}

ENTRY_BODY(cuMemcpyAtoH, (void *dst, CUarray src, unsigned int src_offset, unsigned int count),
	(dst, src, src_offset, count))
{
	return copy_atoh(NULL, false, true, dst, src, src_offset, count);
}

ENTRY_BODY(cuMemcpyAtoHAsync,
	(void *dst, CUarray src, unsigned int src_offset, unsigned int count, CUstream stream),
	(dst, src, src_offset, count, stream))
{
	return copy_atoh(stream, false, false, dst, src, src_offset, count);
}
