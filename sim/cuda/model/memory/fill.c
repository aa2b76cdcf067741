/* SPDX-License-Identifier: Apache-2.0 */
/* Fills as things to be done: the bytes move at once, the time passes in the stream. */
#include "sim/cuda/model/memory/fill.h"

#include <stdint.h>
#include <string.h>

#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/host.h"
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

uint64_t fill_duration(size_t bytes)
{
	/* Both edges of the clock; H200: 6016 bits at 3201 MHz are 4.8 TB/s. */
	uint64_t mbps = (uint64_t)driver.board->memory_bus_bits / 8 *
			(uint64_t)driver.board->clock_memory_mhz * 2;

	return (uint64_t)((double)bytes * 1000 / (double)mbps);
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
		LOCK_SCOPE(&driver.memory_lock);
		if (!host_find((uintptr_t)dst))
			result = CUDA_ERROR_INVALID_VALUE;
	}
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t y = 0; y < fill->height; y++)
		fill_row((void *)(uintptr_t)(dst + y * fill->pitch), fill->value, fill->width,
			fill->element_bytes);
	*ret_duration_ns = fill_duration(row_bytes * fill->height);
	return CUDA_SUCCESS;
}
