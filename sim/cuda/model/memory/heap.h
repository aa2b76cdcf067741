/* SPDX-License-Identifier: Apache-2.0 */
/* Linear memory of a context: small blocks packed into chunks, plain and managed memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/machine.h"
#include "sim/cuda/model/memory/address.h"

struct context;

#define HEAP_GRAIN  512 /* small blocks are packed in this unit; measured on H200, driver 580 */
#define HEAP_GRAINS (ADDRESS_UNIT / HEAP_GRAIN)
#define HEAP_WORDS  (HEAP_GRAINS / 64)

/* A chunk shared by small blocks. */
struct block {
	struct owner owner;
	bool is_touched;
	bool is_listed;	     /* in heap.roomy */
	uint32_t used;	     /* grains */
	uint32_t room;	     /* no free run is longer */
	uint32_t kept;	     /* place of the kept memory that it is, + 1; 0: none */
	uint32_t generation; /* of that place */
	struct context *context;
	CUdeviceptr base;
	struct block *next, *prev; /* of the context */
	struct block *next_roomy, *prev_roomy;
	uint64_t taken[HEAP_WORDS];  /* a bit a grain */
	uint64_t starts[HEAP_WORDS]; /* a bit at the first grain of each allocation */
	uint32_t bytes[HEAP_GRAINS]; /* asked for, at the first grain */
};

/* Whole chunks, or managed memory. */
struct plain {
	struct owner owner;
	bool is_touched;
	enum machine_kind kind;
	struct device *device; /* where it is resident; NULL: managed memory nobody touched */
	struct context *context;
	CUdeviceptr base;
	size_t bytes; /* asked for */
	size_t charged_bytes;
	unsigned int attach_flags; /* managed */
	bool stays_on_host;	   /* managed: advised so; a prefetch moves it all the same */
	uint32_t kept, generation; /* as in struct block */
	bool is_freed;		   /* in the order of a stream, which gets there at: */
	uint64_t free_at_ns;
	struct plain *next, *prev;
};

struct heap {
	struct block *blocks;
	struct block *roomy; /* those that may have room */
	struct block *spare; /* one empty block without a chunk */
	struct plain *plains;
	uint32_t freed; /* plains that wait for their stream */
};

/* Gives back what streams have freed by now. Takes driver.memory_lock. */
void heap_collect(void);

/* All functions from here on are called under driver.memory_lock. */

/* cuMemAlloc. `kind` is MACHINE_PLAIN or what else takes memory in the same way. */
CUresult heap_alloc(
	struct context *context, size_t bytes, enum machine_kind kind, CUdeviceptr *ret_base);
CUresult heap_alloc_managed(
	struct context *context, size_t bytes, unsigned int flags, CUdeviceptr *ret_base);

/* Frees the allocation that starts at `base`, an address owned by a block or a plain. */
CUresult heap_free(struct owner *owner, CUdeviceptr base);

/* The kept memory that the allocation is, or becomes now; false where it cannot be. */
bool heap_keep(struct owner *owner, uint32_t *ret_index, uint32_t *ret_generation);

/* Frees everything of a context. */
void heap_clear(struct context *context);

/* Makes managed memory resident on `device` (NULL: on the host); where it is full, on the host. */
void heap_move_managed(struct plain *plain, struct device *device);

/* An allocation as the program sees it. */
struct extent {
	CUdeviceptr base;
	size_t bytes;
	struct context *context; /* NULL for pools and mapped memory */
	struct device *device;	 /* NULL: on the host */
	bool is_managed;
	struct pool *pool;
	bool *touched; /* set it when the memory may hold something; may be NULL */
	struct plain *plain;
	bool is_accessible;
};
