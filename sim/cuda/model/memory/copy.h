/* SPDX-License-Identifier: Apache-2.0 */
/* Copies as things to be done, now or by a graph. */
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

/* The copy that a program describes. Under driver.memory_lock. */
CUresult copy_from_request(const CUDA_MEMCPY3D *request, struct copy *ret_copy);

/* Moves the bytes, and says how long that takes a stream of the device, and whether the host waits. */
CUresult copy_run(const struct copy *copy, struct device *device, uint64_t *ret_duration_ns,
	bool *ret_has_host);
