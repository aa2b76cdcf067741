/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's figure is held against, of each device: reconcile.c says when, and measured.c what a call took. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/finding.h"
#include "tenant/slice/state.h"

struct account {
	struct lock lock; /* held for one comparison, and only ever tried */
	_Atomic uint64_t next_ns, next_urgent_ns;
	_Atomic uint64_t unattributed_bytes; /* what is charged as unattributed */
	_Atomic uint64_t found_bytes;	     /* reconcile_found_bytes() */
	_Atomic bool
		is_careful; /* more may be charged than was taken, until a comparison is exact */
	_Atomic uint64_t owed, paid;	/* numbers: see is_owed() */
	_Atomic uint64_t owed_for_more; /* the last that is owed as something may be in no books */
	_Atomic uint64_t seen;		/* the last before a comparison that told what is more */
	_Atomic uint64_t next_seen_ns;	/* when that is told once more beside other calls */
	_Atomic uint64_t next_owed_ns;	/* later where comparisons were spoiled */
	uint64_t next_alone_ns;		/* until then a measuring that others spoil waits briefly */
	bool was_less;			/* by the last comparison */
	_Atomic unsigned doubts;	/* seconds in which another thread was comparing */
	_Atomic uint64_t next_doubt_ns;
	struct finding_misses misses; /* is_payable() has no lock */
};
extern struct account accounts[STATE_ORDINALS];

/* Looks; under the account's lock. */
bool account_look(struct account *account, struct device *device, const struct charge *reserved,
	struct finding *ret_found);

/*
 * Makes the unattributed part what it was found to be, where so much was charged; under the account's lock. What is in doubt since
 * comes on top.
 */
void account_correct(
	struct account *account, struct device *device, uint64_t charged, uint64_t other);

/* The account is as it is charged until a comparison knows better. Returns its number. */
uint64_t account_owe(struct account *account);

/* Compares, under the account's lock; what comes to be owed meanwhile is owed afterwards. */
void account_compare(struct account *account, struct device *device, bool is_urgent);

void measured_reset_after_fork(void);
