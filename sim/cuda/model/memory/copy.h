/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills as things to be done, now or by a graph. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

struct device;

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_ANY, SIDE_ARRAY };

/* One end of a copy. */
struct place {
	CUdeviceptr address;
	enum side side;
	size_t pitch; /* from row to row */
	size_t slice; /* from layer to layer */
};

struct shape {
	size_t width, height, depth;
};

struct copy {
	struct place to, from;
	struct shape shape;
};

struct fill {
	CUdeviceptr dst;
	size_t pitch;
	uint32_t value;
	size_t element_bytes;
	size_t width, height;
};

CUresult copy_from_request(const CUDA_MEMCPY3D *request, struct copy *ret_copy);

/* Moves the bytes, and says how long that takes a stream of the device, and whether the host waits. */
CUresult copy_run(const struct copy *copy, struct device *device, uint64_t *ret_duration_ns,
	bool *ret_has_host);
CUresult fill_run(const struct fill *fill, struct device *device, uint64_t *ret_duration_ns);

/* is_thread: stream 0 is the calling thread's; is_waiting: until it is done. */
CUresult copy_2d(CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY2D *request);
CUresult copy_3d(CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY3D *request);
/* What writing so much of a device's memory takes. */
uint64_t copy_fill_duration(size_t bytes);
