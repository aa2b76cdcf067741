/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory (mapped.h) that is mapped into parts of sparse and deferred arrays.
 *
 * Such a mapping is a reference to the memory, like one at an address. It goes when all of its part is
 * unmapped or mapped anew by one mapping, once the stream has got there, or with the array. A part that is unmapped
 * in pieces stays charged until then: the books are too high, never too low.
 */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/tile_parts.h"

/* Mappings on their way out: of a call, and of an array. */
struct tiles;

/*
 * Around cuMemMapArrayAsync: refers to what is mapped, and takes out what is replaced or unmapped, to be
 * given back when the stream has got there. After an error the driver must not be asked. Where the driver refuses a list of
 * several parts, nobody knows which were done: what it names to be mapped is charged beside what was mapped. CUDA_ERROR_OUT_OF_MEMORY also
 * where another thread is in such a call for too long.
 */
CUresult tiles_begin(const CUarrayMapInfo *list, unsigned count, CUstream stream,
	struct tiles **ret_tiles) MUST_CHECK;
void tiles_end(struct tiles *tiles, const CUarrayMapInfo *list, bool is_done, CUstream stream);

/* What is mapped into an array that is being destroyed: NULL for nothing. Then, or if it was not. */
struct mapped_tile *tiles_take(uint64_t resource) MUST_CHECK;
void tiles_taken(struct mapped_tile *list, bool is_gone);

/* A context is gone with its arrays. */
void tiles_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void tiles_reset_after_fork(void);
