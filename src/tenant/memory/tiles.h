/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory (mapped.h) that is mapped into parts of sparse and deferred arrays.
 *
 * Such a mapping is a reference to the memory, like one at an address. It goes when the same part is
 * unmapped or mapped anew, once the stream has got there, or with the array. A part that is unmapped
 * in other pieces than it was mapped in stays charged until the array goes: the books are then too
 * high, never too low.
 */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

/* Mappings on their way out. */
struct tiles;

/* The array's name for us: its handle, the lowest bit set for a mipmapped one. */
static inline uint64_t tiles_resource(const void *handle, bool is_mipmap)
{
	return (uintptr_t)handle | is_mipmap;
}

/*
 * Around cuMemMapArrayAsync: refers to what is mapped, and takes out what is replaced or unmapped, to be
 * given back when the stream has got there. After an error the driver must not be asked. Where the driver refuses a list of
 * several parts, nobody knows which were done: what it names to be mapped stays until the array ends.
 */
CUresult tiles_begin(const CUarrayMapInfo *list, unsigned count, CUstream stream,
	struct tiles **ret_tiles) MUST_CHECK;
void tiles_end(struct tiles *tiles, const CUarrayMapInfo *list, bool is_done, CUstream stream);

/* What is mapped into an array that is being destroyed: NULL for nothing. Then, or if it was not. */
struct tiles *tiles_take(uint64_t resource) MUST_CHECK;
void tiles_taken(struct tiles *tiles, bool is_gone);

/* A context is gone with its arrays. */
void tiles_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void tiles_reset_after_fork(void);
