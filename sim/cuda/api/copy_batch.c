/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies, done one after the other; and of decompressions, for which there is no engine. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"
#include "sim/cuda/model/memory/array.h"

/* A batch is given to any stream but the legacy one. */
static bool is_legacy(CUstream stream, bool is_thread)
{
	return stream == CU_STREAM_LEGACY || (!stream && !is_thread);
}

static bool is_order(CUmemcpySrcAccessOrder order)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
	       order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Each attribute is for the copies from its start on; the first starts at the first copy. */
static bool are_attributes(const CUmemcpyAttributes *attributes, const size_t *starts,
	size_t attribute_count, size_t count)
{
	if (!attributes || !starts || attribute_count == 0 || attribute_count > count ||
		starts[0] != 0)
		return false;
	for (size_t i = 0; i < attribute_count; i++)
		if (starts[i] >= count || (i > 0 && starts[i] <= starts[i - 1]) ||
			!is_order(attributes[i].srcAccessOrder))
			return false;
	return true;
}

static CUresult copy_one(
	CUstream stream, bool is_thread, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	CUDA_MEMCPY3D row = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = src,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = dst,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1};

	return bytes != 0 ? submit_copy_3d(stream, is_thread, false, &row)
			  : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_batch(CUstream stream, bool is_thread, const CUdeviceptr *dsts,
	const CUdeviceptr *srcs, const size_t *sizes, size_t count,
	const CUmemcpyAttributes *attributes, const size_t *starts, size_t attribute_count,
	size_t *ret_failed)
{
	CUresult result = CUDA_SUCCESS;

	if (ret_failed)
		*ret_failed = SIZE_MAX;
	if (!dsts || !srcs || !sizes || is_legacy(stream, is_thread) ||
		!are_attributes(attributes, starts, attribute_count, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		result = copy_one(stream, is_thread, dsts[i], srcs[i], sizes[i]);
		if (result != CUDA_SUCCESS && ret_failed)
			*ret_failed = i;
	}
	return result;
}

ENTRY_FORMS(cuMemcpyBatchAsync, _ptsz,
	(CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attributes, size_t *starts, size_t attribute_count,
		size_t *failed, CUstream stream),
	(dsts, srcs, sizes, count, attributes, starts, attribute_count, failed, stream))
{
	return copy_batch(stream, is_thread, dsts, srcs, sizes, count, attributes, starts,
		attribute_count, failed);
}

ENTRY_FORMS(cuMemcpyBatchAsync_v2, _ptsz,
	(CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attributes, size_t *starts, size_t attribute_count,
		CUstream stream),
	(dsts, srcs, sizes, count, attributes, starts, attribute_count, stream))
{
	return copy_batch(stream, is_thread, dsts, srcs, sizes, count, attributes, starts,
		attribute_count, NULL);
}

/* Bytes of an element of an operand; 1 of one that is no array, 0 where there is none such. */
static size_t element_of(const CUmemcpy3DOperand *operand)
{
	const struct array *array;
	size_t bytes = 0;

	if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
		return 1;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return 0;
	LOCK_SCOPE(&driver.memory_lock);
	array = array_find(operand->op.array.array, false);
	if (array)
		bytes = array_element(&array->descriptor);
	return bytes;
}

static void set_source(CUDA_MEMCPY3D *copy, const CUmemcpy3DOperand *operand, size_t element)
{
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
		copy->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
		copy->srcDevice = operand->op.ptr.ptr;
		copy->srcPitch = operand->op.ptr.rowLength * element;
		copy->srcHeight = operand->op.ptr.layerHeight;
	} else {
		copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
		copy->srcArray = operand->op.array.array;
		copy->srcXInBytes = operand->op.array.offset.x * element;
		copy->srcY = operand->op.array.offset.y;
		copy->srcZ = operand->op.array.offset.z;
	}
}

static void set_destination(CUDA_MEMCPY3D *copy, const CUmemcpy3DOperand *operand, size_t element)
{
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
		copy->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		copy->dstDevice = operand->op.ptr.ptr;
		copy->dstPitch = operand->op.ptr.rowLength * element;
		copy->dstHeight = operand->op.ptr.layerHeight;
	} else {
		copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
		copy->dstArray = operand->op.array.array;
		copy->dstXInBytes = operand->op.array.offset.x * element;
		copy->dstY = operand->op.array.offset.y;
		copy->dstZ = operand->op.array.offset.z;
	}
}

static CUresult copy_operands(CUstream stream, bool is_thread, const CUDA_MEMCPY3D_BATCH_OP *op)
{
	size_t from = element_of(&op->src), to = element_of(&op->dst);
	size_t element = from > to ? from : to;
	CUDA_MEMCPY3D copy = {.WidthInBytes = op->extent.width * element,
		.Height = op->extent.height,
		.Depth = op->extent.depth};

	if (from == 0 || to == 0 || op->extent.width == 0 || op->extent.height == 0 ||
		op->extent.depth == 0 || !is_order(op->srcAccessOrder))
		return CUDA_ERROR_INVALID_VALUE;
	set_source(&copy, &op->src, element);
	set_destination(&copy, &op->dst, element);
	return submit_copy_3d(stream, is_thread, false, &copy);
}

static CUresult copy_3d_batch(CUstream stream, bool is_thread, const CUDA_MEMCPY3D_BATCH_OP *list,
	size_t count, unsigned long long flags, size_t *ret_failed)
{
	CUresult result = CUDA_SUCCESS;

	if (ret_failed)
		*ret_failed = SIZE_MAX;
	if (!list || count == 0 || flags != 0 || is_legacy(stream, is_thread))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		result = copy_operands(stream, is_thread, &list[i]);
		if (result != CUDA_SUCCESS && ret_failed)
			*ret_failed = i;
	}
	return result;
}

ENTRY_FORMS(cuMemcpy3DBatchAsync, _ptsz,
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
		CUstream stream),
	(count, list, failed, flags, stream))
{
	return copy_3d_batch(stream, is_thread, list, count, flags, failed);
}

ENTRY_FORMS(cuMemcpy3DBatchAsync_v2, _ptsz,
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream),
	(count, list, flags, stream))
{
	return copy_3d_batch(stream, is_thread, list, count, flags, NULL);
}

/* The boards that are simulated have no engine for it. */
ENTRY_STREAM(cuMemBatchDecompressAsync, _ptsz, handle,
	(CUmemDecompressParams * list, size_t count, unsigned int flags, size_t *failed,
		CUstream handle),
	(list, count, flags, failed, handle))
{
	if (failed)
		*failed = SIZE_MAX;
	return !list || count == 0 || flags != 0 ? CUDA_ERROR_INVALID_VALUE
						 : CUDA_ERROR_NOT_SUPPORTED;
}
