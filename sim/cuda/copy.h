/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of two and three dimensions, whichever call asks for them. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"

/* is_thread: stream 0 is the calling thread's; is_waiting: until it is done. */
CUresult copy_2d(CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY2D *request);
CUresult copy_3d(CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY3D *request);
