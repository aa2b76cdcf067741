/* SPDX-License-Identifier: Apache-2.0 */
/* Launching a kernel, whichever call asks for it. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"

struct launch_size {
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared_bytes;
};

/* is_thread: stream 0 is the calling thread's. */
CUresult launch_kernel(bool is_thread, CUfunction function, const struct launch_size *size,
	CUstream handle, void **params, void **extra);
