/* SPDX-License-Identifier: Apache-2.0 */
/* Fills as things to be done, now or by a graph. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

struct device;

struct fill {
	CUdeviceptr dst;
	size_t pitch;
	uint32_t value;
	size_t element_bytes;
	size_t width, height;
};

CUresult fill_run(const struct fill *fill, struct device *device, uint64_t *ret_duration_ns);

/* The time that a device needs to write so much of its memory. */
uint64_t fill_duration(size_t bytes);
