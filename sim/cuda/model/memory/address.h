/* SPDX-License-Identifier: Apache-2.0 */
/* Device addresses: where memory lies, and to what an address belongs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

/* Addresses are given out and looked up in this unit, whatever the board's chunk is. */
#define ADDRESS_UNIT ((size_t)2 << 20)

enum owner_type {
	OWNER_BLOCK,
	OWNER_PLAIN,
	OWNER_MANAGED,
	OWNER_POOL,
	OWNER_GRAPH,
	OWNER_RESERVATION,
	OWNER_OPENED
};

struct extent;
struct owner;

/* The operations of one type of owner, on addresses of its own. Under driver.memory_lock. */
struct owner_ops {
	/* The allocation that holds `address`. Returns whether there is one. */
	bool (*find)(struct owner *owner, CUdeviceptr address, struct extent *ret_extent);
	/* cuMemFree of the allocation that starts at `base`; NULL: not for these. */
	CUresult (*free)(struct owner *owner, CUdeviceptr base);
	/* cuMemFreeAsync in a stream that gets there at that time of its device's clock. */
	CUresult (*free_at)(struct owner *owner, CUdeviceptr base, uint64_t at_ns);
};

/* The first member of everything that owns addresses. */
struct owner {
	enum owner_type type;
	const struct owner_ops *ops;
};

/* All functions here are called under driver.memory_lock. */

/*
 * Takes `bytes` (rounded up to the unit) of fresh zeroed memory from the arena. The memory costs
 * nothing until it is touched. Returns 0 and the address, or -ENOMEM.
 */
int address_take(size_t bytes, CUdeviceptr *ret_base);
/* The same where a pointer of 32 bits reaches; not on every kind of machine. */
int address_take_low(size_t bytes, CUdeviceptr *ret_base);
/* Gives back what either gave. is_touched: pages may hold something. */
void address_give(CUdeviceptr base, size_t bytes, bool is_touched);

/* A mapping of its own, aligned to the unit and at least `alignment`. protection as for mmap. */
int address_map(size_t bytes, size_t alignment, int protection, CUdeviceptr *ret_base);
void address_unmap(CUdeviceptr base, size_t bytes);

/* Says that [base, base + bytes) belongs to `owner` (NULL: to nobody). 0 or -ENOMEM. */
int address_set_owner(CUdeviceptr base, size_t bytes, struct owner *owner);
struct owner *address_find_owner(CUdeviceptr address);
