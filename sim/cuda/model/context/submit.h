/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a program gives to a stream: done now, or captured. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/model/memory/fill.h"

struct launch_size {
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared_bytes;
};

/* is_thread: stream 0 is the calling thread's. */
CUresult submit_kernel(bool is_thread, CUfunction function, const struct launch_size *size,
	CUstream handle, void **params, void **extra);

/* is_waiting: until it is done. */
CUresult submit_copy(CUstream handle, bool is_thread, bool is_waiting, const struct copy *copy);
CUresult submit_copy_3d(
	CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY3D *request);
CUresult submit_fill(CUstream handle, bool is_thread, const struct fill *fill);
