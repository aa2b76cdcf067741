/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared allocations: device memory that several processes of a slice may hold, charged once.
 *
 * Memory becomes a shared allocation when it is shared for the first time: its charge moves from its process's
 * slot to the shared allocation. Each process that holds it (who made it, and whoever opened it) is a holder, once,
 * however often it opened it. With the last holder the charge goes back, whichever that is and however
 * it ends; and where descriptors keep the memory, too, not before the last of these is closed.
 *
 * One process at a time changes the shared allocations (a lock that dies with its holder), for 50 ms at most;
 * where that is not to be had, what was to be given back stays charged until somebody sweeps, so the
 * slice's total is too high at worst.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/region.h"

enum {
	_SHARED_E_SUCCESS = 0,
	SHARED_E_FULL,	 /* no place is left */
	SHARED_E_ABSENT, /* no shared allocation has this name */
};

/*
 * What a shared allocation is found by: its mark, or the handle that the driver gave out for it, all of its bytes, as nothing tells which of
 * them the driver looks at. The key of a handle only says where to look closer.
 */
struct shared_name {
	uint64_t key;			     /* the mark, or of the bytes; 0: nothing */
	uint8_t handle[REGION_HANDLE_BYTES]; /* zeros for a mark */
};

/* What is to become a shared allocation; fd is a marked descriptor of it, or -1 where none can keep the memory. */
struct shared_memory {
	unsigned slot, device;
	uint64_t units;		 /* that the slot holds now */
	struct shared_name name; /* its key is not 0 */
	uint64_t mark;		 /* 0 where fd is -1 */
	int fd;
};

/* Makes a shared allocation, whose holder is the slot. SHARED_E_FULL, or -errno; then nothing was changed. */
int shared_make(const struct region *region, const struct shared_memory *memory,
	unsigned *ret_shared) MUST_CHECK;

/*
 * More units of the slot, which made it and holds it, become its own; and so many of its units are the slot's again. Without a lock: while
 * its maker lives nobody else changes how much it is. One thread of the maker at a time.
 */
void shared_grow(const struct region *region, unsigned slot, unsigned shared, uint64_t units);
void shared_shrink(const struct region *region, unsigned slot, unsigned shared, uint64_t units);

/* Descriptors keep the shared allocation from now on, too. */
int shared_set_mark(const struct region *region, unsigned shared, uint64_t mark, int fd) MUST_CHECK;

/* A handle with this name opens the shared allocation from now on, and no other shared allocation. */
int shared_set_name(
	const struct region *region, unsigned shared, const struct shared_name *name) MUST_CHECK;

/* Whether a handle with this name opens the shared allocation; or -errno. */
int shared_is_named(const struct region *region, unsigned shared, const struct shared_name *name,
	bool *ret_is_named) MUST_CHECK;

/* Makes the slot a holder of the shared allocation with this name or mark. SHARED_E_ABSENT, or -errno. */
int shared_hold(const struct region *region, unsigned slot, const struct shared_name *name,
	unsigned *ret_shared) MUST_CHECK;

/* The slot holds the shared allocation no more; the last one gives its charge back. */
void shared_let_go(const struct region *region, unsigned slot, unsigned shared);

bool shared_is_held_by(const struct region_shared *shared, unsigned slot);

/* Whether no other slot holds it than this one, which does. */
bool shared_is_held_alone(const struct region_shared *shared, unsigned slot);

/* Whether the slot holds any shared allocation. */
bool shared_has_holder(const struct region_file *file, unsigned slot);

/*
 * So much of the device's memory is kept by descriptors alone, by their marks. A close() of one is no call of the driver's: the ledger knows of it by the
 * next sweep, and not at all while the mark stands on another open file as well.
 */
uint64_t shared_left_bytes(const struct region *region, unsigned device);

/* Whoever made the memory has let it go, so its handle opens nothing any more. */
void shared_retire(const struct region *region, unsigned shared);

/* Gives back what nobody holds any more, in the name of the slot. Returns how many shared allocations that ended. */
unsigned shared_sweep(const struct region *region, unsigned slot);

/*
 * Whether a descriptor may keep the shared allocation's memory still, asked by the path under which the region's
 * processes know the file; where that cannot be told, it does.
 */
bool shared_is_kept_by_files(
	const struct region_shared *shared, const char shared_path[REGION_PATH_BYTES]);

/* How the open file behind an exported descriptor is opened by others; all of a machine are of one file. */
struct shared_file {
	uint64_t device, inode;
	char path[REGION_PATH_BYTES];
};

/*
 * Opens it anew, under a path that another process may have written: only what it is harmless to open, a regular
 * file or NVIDIA's control device, and only if it is the one that is meant; else -1.
 */
int shared_open_file(const struct shared_file *file) MUST_CHECK;

/* A slot is given up: it holds nothing any more. The caller owns the slot by its byte lock. */
void shared_forget_slot(struct region_file *file, unsigned slot);
