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

#include "region/shared.h"
#include "tenant/memory/charge.h"

/* What a handle of REGION_HANDLE_BYTES is found by; its key is never 0. */
struct shared_name ipc_name(const void *handle);

/* What is known of memory that becomes shared. */
struct ipc_memory {
	struct device *device;
	uint64_t bytes; /* charged to this process now */
	enum charge_kind kind;
	struct shared_name name;
	uint64_t mark; /* of the descriptor fd; 0: none keeps it, and fd is -1 */
	int fd;
	bool is_beyond; /* charged beside what holds the memory here, so NVML shows nothing for it */
};

/*
 * Moves the charge to a shared allocation that this process holds from now on. False where that cannot be: the
 * charge is then this process's as before.
 */
bool ipc_make(const struct ipc_memory *memory, unsigned *ret_shared) MUST_CHECK;

/*
 * Moves more that is charged to this process to a shared allocation that it made: before the driver is asked, so that it stays charged
 * where this process dies with the memory, or when NVML shows it. And what was not taken is this process's again.
 */
void ipc_grow(unsigned shared, uint64_t bytes);
void ipc_shrink(unsigned shared, uint64_t bytes);

/* How large it is, in steps of a mark (base/mark.h). */
uint32_t ipc_steps(unsigned shared);

/* Makes a shared allocation known to be kept by descriptors with this mark, too; false where that fails. */
bool ipc_set_mark(unsigned shared, uint64_t mark, int fd) MUST_CHECK;

/*
 * Holds (once more) what another process of the slice made; false where none has this name. Of what is opened
 * by its handle's bytes (not imported) NVML may show the memory for this process.
 */
bool ipc_hold(const struct shared_name *name, bool is_opened, unsigned *ret_shared) MUST_CHECK;

/* How often this process holds it. */
unsigned ipc_holds(unsigned shared);

/* Holds once more what is held. */
void ipc_hold_again(unsigned shared);

/* Whether a handle with this name opens it; false where that cannot be told. */
bool ipc_is_named(unsigned shared, const struct shared_name *name);

/* Makes a handle with this name open it; false where that fails. */
bool ipc_set_name(unsigned shared, const struct shared_name *name) MUST_CHECK;

/* Lets it go once. The memory's maker says so when nobody else can open it any more (is_over). */
void ipc_let_go(unsigned shared, bool is_over);

/* What NVML showed for this process is kept by something else when the process has ended its last reference: the hold stays, and it is shown no more. */
void ipc_hide(unsigned shared);
/* NVML shows it for this process, which made it, has let it go, and imports it again; until it lets go of that. */
void ipc_show_again(unsigned shared);
/* The entry of the device on which this process made it; -1: another one did. */
int ipc_own_entry(unsigned shared);

/* NVML shows so much more (or less) of what the process made and shares: a pool's reserve changes. */
void ipc_show(const struct device *device, int64_t bytes);

/* So much more (or less) of another slice, or interface, is open here, and charged to this process. */
void ipc_open_foreign(const struct device *device, int64_t bytes);

/*
 * What NVML shows for this process of the shared allocations that it holds on the device: what it made, and what it
 * opened and nobody else holds (until then it is shown for its maker, or another opener). And what it may show
 * besides: what it opened of another slice. What was imported by descriptor is shown for its maker or for nobody.
 */
uint64_t ipc_shown_bytes(const struct device *device);
uint64_t ipc_foreign_bytes(const struct device *device);

/* Whether this process has memory of the slice open that others hold, too: it may be shown for this one any time. */
bool ipc_is_open_elsewhere(const struct device *device);

/* For a child of fork(). */
void ipc_reset_after_fork(void);
