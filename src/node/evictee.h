/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a slice whose device memory is moved to the host, or comes back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "region/evict.h"
#include "region/snapshot.h"

enum evictee_stage { STAGE_RUNNING, STAGE_LOCKED, STAGE_AWAY, STAGE_BOOKED };

struct evictee {
	struct evict_process process;
	int pid; /* as seen from here */
	char command[17];
	bool is_away; /* by the ledger, before we came */
	enum evictee_stage stage;
	uint64_t
		bytes[REGION_DEVICES]; /* free memory that it needs to come back; once it is away */
};

struct evictees {
	struct evictee *list;
	unsigned count;
};

/*
 * Reads the region: at once, or when the slice is quiet or the wait for that was long enough. The snapshot is to be
 * freed; it is NULL for a slice without a region, which has no process that ever used a device. -errno with err
 * set.
 */
int evictee_read(const char *region, bool is_quiet, struct snapshot **ret_snapshot,
	struct err *err) MUST_CHECK;

/*
 * The processes that hold something or whose memory is away; with is_all, every process of the slice. The list is to be
 * freed, whatever comes: -ESRCH where a process cannot be reached from here, or -ENOMEM, with err set.
 */
int evictee_list(const struct snapshot *s, bool is_all, struct evictees *ret_evictees,
	struct err *err) MUST_CHECK;

/* Whether the memory of the snapshot's process of that index is away, by the ledger. */
bool evictee_is_away(const struct snapshot *s, unsigned process);

/* Whether that process holds anything of a device. */
bool evictee_holds(const struct snapshot *s, unsigned process);

#define EVICTEE_E_ENDED 1

/*
 * Whether the process is the slice's by more than the word of the region, which its processes write: it is the user's
 * whose the slice is, and it has mapped this very file, which this process has mapped at region_file. 0; EVICTEE_E_ENDED
 * where no process of that number began then: it may be somebody's, and is not to be touched; -EPERM, or as evictee_look(), with err set.
 */
int evictee_check(const struct evictee *evictee, const void *region_file, uid_t owner,
	struct err *err) MUST_CHECK;

/* 0: it lives; EVICTEE_E_ENDED; -errno with err set where it cannot be looked at, so that nobody knows. */
int evictee_look(const struct evictee *evictee, struct err *err) MUST_CHECK;
