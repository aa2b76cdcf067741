/* SPDX-License-Identifier: Apache-2.0 */
/* Fills: the bytes change at once, the time passes in the stream. */
#include <stdint.h>
#include <string.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/memory/lookup.h"

static void fill_row(void *row, uint32_t value, size_t width, size_t element_bytes)
{
	switch (element_bytes) {
	case 1:
		memset(row, (int)value, width);
		break;
	case 2:
		for (size_t i = 0; i < width; i++)
			((uint16_t *)row)[i] = (uint16_t)value;
		break;
	default:
		for (size_t i = 0; i < width; i++)
			((uint32_t *)row)[i] = value;
	}
}

CUresult fill_run(const struct fill *fill, struct device *device, uint64_t *ret_duration_ns)
{
	size_t row_bytes = fill->width * fill->element_bytes;
	CUdeviceptr dst = fill->dst;
	bool is_host;
	CUresult result;

	*ret_duration_ns = 0;
	if (fill->width == 0 || fill->height == 0)
		return CUDA_SUCCESS;
	if (dst == 0 || dst % fill->element_bytes != 0 ||
		fill->width > SIZE_MAX / fill->element_bytes / fill->height ||
		(fill->height > 1 && fill->pitch < row_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = lookup_use(dst, (fill->height - 1) * fill->pitch + row_bytes, device, &is_host);
	if (result == CUDA_SUCCESS && is_host) {
		pthread_mutex_lock(&driver.memory_lock);
		if (!lookup_host((uintptr_t)dst))
			result = CUDA_ERROR_INVALID_VALUE;
		pthread_mutex_unlock(&driver.memory_lock);
	}
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t y = 0; y < fill->height; y++)
		fill_row((void *)(uintptr_t)(dst + y * fill->pitch), fill->value, fill->width,
			fill->element_bytes);
	*ret_duration_ns = copy_fill_duration(row_bytes * fill->height);
	return CUDA_SUCCESS;
}

static CUresult fill(CUstream handle, bool is_thread, CUdeviceptr dst, size_t pitch, uint32_t value,
	size_t element_bytes, size_t width, size_t height)
{
	struct work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
		.fill = {dst, pitch, value, element_bytes, width, height}};
	struct context *context;
	struct stream *stream;
	uint64_t duration_ns;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (capture_is_on(stream))
		return capture_add(stream, &work);
	result = fill_run(&work.fill, context->device, &duration_ns);
	if (result == CUDA_SUCCESS)
		timeline_add(stream, duration_ns, true);
	return result;
}

#define FILL(bits, type)                                                                      \
	ENTRY_BODY(cuMemsetD##bits, (CUdeviceptr_v1 dst, type value, unsigned int count),     \
		(dst, value, count))                                                          \
	{                                                                                     \
		return fill(NULL, false, dst, 0, value, bits / 8, count, 1);                  \
	}                                                                                     \
	ENTRY_FORMS(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, type value, size_t count), \
		(dst, value, count))                                                          \
	{                                                                                     \
		return fill(NULL, is_thread, dst, 0, value, bits / 8, count, 1);              \
	}                                                                                     \
	ENTRY_FORMS(cuMemsetD##bits##Async, _ptsz,                                            \
		(CUdeviceptr dst, type value, size_t count, CUstream stream),                 \
		(dst, value, count, stream))                                                  \
	{                                                                                     \
		return fill(stream, is_thread, dst, 0, value, bits / 8, count, 1);            \
	}                                                                                     \
	ENTRY_BODY(cuMemsetD2D##bits,                                                         \
		(CUdeviceptr_v1 dst, unsigned int pitch, type value, unsigned int width,      \
			unsigned int height),                                                 \
		(dst, pitch, value, width, height))                                           \
	{                                                                                     \
		return fill(NULL, false, dst, pitch, value, bits / 8, width, height);         \
	}                                                                                     \
	ENTRY_FORMS(cuMemsetD2D##bits##_v2, _ptds,                                            \
		(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height),     \
		(dst, pitch, value, width, height))                                           \
	{                                                                                     \
		return fill(NULL, is_thread, dst, pitch, value, bits / 8, width, height);     \
	}                                                                                     \
	ENTRY_FORMS(cuMemsetD2D##bits##Async, _ptsz,                                          \
		(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,      \
			CUstream stream),                                                     \
		(dst, pitch, value, width, height, stream))                                   \
	{                                                                                     \
		return fill(stream, is_thread, dst, pitch, value, bits / 8, width, height);   \
	}

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
