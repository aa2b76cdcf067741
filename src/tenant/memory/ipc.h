/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that this process shares with others of its slice: its part in the region's shared allocations.
 *
 * The slice pays for memory once, however many of its processes hold it. What comes from another slice
 * is charged to this one from when it is opened, because nobody here pays for it otherwise
 * (docs/decisions/0012-shared-memory.md).
 */
#pragma once

#include <stddef.h>

#include "tenant/memory/charge.h"

/* What handles that are bytes are found by; never 0. */
uint64_t ipc_key(const void *bytes, size_t size);

/* What is known of memory that becomes shared. */
struct ipc_memory {
	struct device *device;
	uint64_t bytes; /* charged to this process now */
	enum charge_kind kind;
	uint64_t key;
	uint64_t mark; /* of the descriptor fd; 0: none keeps it, and fd is -1 */
	int fd;
	bool is_pool; /* its maker's part in it is shown by NVML only as long as it is used */
};

/*
 * Moves the charge to a shared allocation that this process holds from now on. False where that cannot be: the
 * charge is then this process's as before.
 */
bool ipc_make(const struct ipc_memory *memory, unsigned *ret_shared) MUST_CHECK;

/* Moves more that was charged to this process to a shared allocation that it made. */
void ipc_grow(unsigned shared, uint64_t bytes);

/* How large it is, in steps of a mark (base/mark.h). */
uint32_t ipc_steps(unsigned shared);

/* Makes a shared allocation known to be kept by descriptors with this mark, too; false where that fails. */
bool ipc_set_mark(unsigned shared, uint64_t mark, int fd) MUST_CHECK;

/* Holds (once more) what another process of the slice made; false where none has this key. */
bool ipc_hold(uint64_t key, unsigned *ret_shared) MUST_CHECK;

/* Holds once more what is held. */
void ipc_hold_again(unsigned shared);

/* Makes a handle with this key open it; false where that fails. */
bool ipc_set_key(unsigned shared, uint64_t key) MUST_CHECK;

/* Lets it go once. The memory's maker says so when nobody else can open it any more (is_over). */
void ipc_let_go(unsigned shared, bool is_over);

/*
 * What NVML shows for this process of the shared allocations that it holds on the device: what it made, and at
 * most also what it opened (that is shown for its maker, as long as the maker holds it).
 */
uint64_t ipc_made_bytes(const struct device *device);
uint64_t ipc_opened_bytes(const struct device *device);

/* For a child of fork(). */
void ipc_reset_after_fork(void);
