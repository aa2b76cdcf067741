/* SPDX-License-Identifier: Apache-2.0 */
/* What an array will take, before it is made. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

/* Whether memory of handles is mapped into such an array, so that it takes none itself. */
bool array_size_is_deferred(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/*
 * At least the bytes that the driver will take for the array (level_count 0), or mipmapped array, in
 * the current context. *ret_refusal is what the driver says to such a descriptor, CUDA_SUCCESS where
 * it makes arrays like it or where it could not be asked.
 */
uint64_t array_size_ask(
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level_count, CUresult *ret_refusal);
