/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of a process whose device memory was moved to the host by a checkpoint, or comes back.
 *
 * Somebody outside the slice's processes does it, on behalf of the process, whose driver calls all wait
 * meanwhile. What it holds leaves the ledger and stands in evicted_bytes; its figures by kind stay, for
 * they say what it will hold again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/region.h"

enum {
	_EVICT_E_SUCCESS = 0,
	EVICT_E_GONE, /* the process has ended; nothing was changed */
	EVICT_E_BUSY, /* its books did not come to rest; nothing was changed */
	EVICT_E_AWAY, /* books of processes of this slice are out of the ledger */
};

/* A process's slot, by what nobody else has. */
struct evict_process {
	unsigned slot;
	uint32_t pid; /* in its own namespace, as its slot says */
	uint64_t start_time;
};

/*
 * Takes what the process holds out of the ledger; after the checkpoint, so that the books are never below
 * what the driver holds. Waits up to a second for books at rest.
 */
int evict_take(struct region *region, const struct evict_process *process) MUST_CHECK;

/* Whether the process's slot is its own still: by the lock or the token, whatever /proc says of a process of that number. */
bool evict_is_there(const struct region *region, const struct evict_process *process);

/*
 * What the process has of each device by its books, on the device and on the host: after a checkpoint, what it
 * takes to bring it back.
 */
void evict_weigh(const struct region *region, const struct evict_process *process,
	uint64_t ret_bytes[REGION_DEVICES]);

/* Charges all of it again, whether it fits or not; before the memory comes back. */
int evict_return(struct region *region, const struct evict_process *process) MUST_CHECK;

/*
 * For a process of the slice that has the driver bring another one back: that one's books stay in the ledger until evict_let_go(), so
 * that what comes back is charged, and its begin and its end are changes of the ledger. self is the slot of who asks, who sees the other one by this pid. EVICT_E_GONE: it is no process
 * of the slice. EVICT_E_AWAY: memory of the slice was moved away from outside, and who did so brings it back.
 */
struct evict_hold {
	unsigned slot;
	int fd; /* -1: nothing is held */
};
int evict_hold(const struct region *region, unsigned self, uint32_t pid,
	struct evict_hold *ret_hold) MUST_CHECK;
void evict_let_go(const struct region *region, const struct evict_hold *hold);

/*
 * Whether what the slice holds on the device stays there for as long as ledger_changes() are the same, asked when these were read: no managed
 * memory, which goes to the host and comes back, and no checkpoint under way, of those that have an evict_hold. False where that cannot
 * be told.
 */
bool evict_stays(const struct region *region, unsigned device);
