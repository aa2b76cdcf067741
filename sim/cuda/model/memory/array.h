/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and mipmapped arrays: what they take, what is mapped into them, what is in them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

struct context;
struct handle;

/* The driver tells sizes in multiples of 64 KiB (H200, driver 580). */
#define ARRAY_STEP 65536u
/* Small arrays are packed closer: 100 of 16 KiB were measured to share 2 MiB. The grain is estimated. */
#define ARRAY_GRAIN  4096u
#define ARRAY_LEVELS 18

#define SHELF_GRAINS 512u

/* 2 MiB of a context that small arrays share. */
struct shelf {
	struct context *context;
	bool is_taken[SHELF_GRAINS];
	unsigned int count; /* arrays in it */
	struct shelf *next, *prev;
};

/* Memory of a handle that a sparse or deferred array uses for a part of itself. */
struct tile {
	CUarrayMapInfo info;
	struct handle *handle;
	uint64_t until_ns; /* unmapped when its stream gets there; UINT64_MAX: mapped */
	struct tile *next;
};

/* Kept for the next one when destroyed, so that a stale handle is refused until then. */
struct array {
	uint32_t magic; /* 0 once destroyed */
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	unsigned int level_count; /* 0: no mipmapped array */
	struct context *context;
	uint64_t bytes;	      /* not rounded up */
	uint64_t taken_bytes; /* whole chunks of its own */
	struct shelf *shelf;  /* or a place in one that is shared */
	unsigned int shelf_at, shelf_grains;
	struct array *parent;		    /* of a level */
	struct array *levels[ARRAY_LEVELS]; /* those that were asked for */
	struct tile *tiles;
	uint8_t *content; /* rows without gaps; NULL until written */
	size_t content_bytes;
	struct array *next, *prev; /* of the context */
};

/* All functions here are called under driver.memory_lock. */

/* Bytes of an element; 0 for a format that is not simulated. */
size_t array_element(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* Whether the driver would make such an array. */
bool array_is_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int level_count);

/* Makes one, with its memory unless it is sparse or deferred. */
CUresult array_make(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
	unsigned int level_count, struct array **ret_array);

/* Gives everything back, with levels and mapped memory. */
void array_drop(struct array *array);

/* The array of a handle: of a mipmapped array where is_mipmap, else of an array or level; or NULL. */
struct array *array_find(const void *handle, bool is_mipmap);

/* The array of one level, made when first asked for; NULL without memory. */
struct array *array_level(struct array *mipmap, unsigned int level);

/* Drops all arrays of a context that ends. */
void array_clear(struct context *context);

/*
 * Where element (x bytes, y, z) of an array's content is, and how far its rows and layers are apart.
 * CUDA_ERROR_INVALID_VALUE unless width bytes, height and depth from there on are inside.
 */
CUresult array_content(CUarray handle, const size_t at[3], const size_t extent[3],
	uint8_t **ret_content, size_t *ret_pitch, size_t *ret_slice);

/* Maps or unmaps one part, for the stream that gets there at time_ns. */
CUresult array_map(const CUarrayMapInfo *info, uint64_t time_ns);

/* Lets go of what is unmapped from an array before that time. */
void array_let_go(struct array *array, uint64_t before_ns);

/* Lets go of what was unmapped before now, in all arrays; takes memory_lock itself. */
void array_collect(void);
