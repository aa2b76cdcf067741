/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region as somebody sees it who is not of the slice: read with read(2), never mapped, so that
 * a file that shrinks or lies can neither crash nor mislead the reader for longer than one look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/layout.h"

struct snapshot_process {
	uint32_t pid;
	unsigned slot;
	uint64_t start_time, pid_namespace;
	uint64_t notes; /* of enum region_note */
	char command[17];
	uint64_t held_bytes[REGION_DEVICES]; /* with what it made and shared */
	uint64_t kind_bytes[REGION_DEVICES][CHARGE_KIND_COUNT];
	uint64_t evicted_bytes[REGION_DEVICES]; /* of what the kinds say; not held now */
	uint64_t busy_until_ns[REGION_DEVICES]; /* CLOCK_MONOTONIC; 0: nothing is on the device */
};

/* A device's compute time, as the slice's processes keep it; all zero where nothing is metered. */
struct snapshot_compute {
	uint64_t busy_ns, launches, budget_wait_ns, turn_wait_ns,
		lent_ns;			       /* since the file was made */
	uint16_t cores_permille, cap_permille, weight; /* as last applied; struct share_compute */
	uint16_t
		counted_permille; /* what of a charge counts beside untracked processes; 1000: all */
	uint8_t priority;
	unsigned state; /* of enum region_compute_state */
};

struct snapshot_device {
	char uuid[REGION_UUID_BYTES];
	uint64_t used_bytes;  /* held by living processes, and by descriptors */
	uint64_t limit_bytes; /* as the slice's processes see it; 0: none */
	uint64_t refusal_count, drift_count;
	struct snapshot_compute compute;
};

struct snapshot {
	struct snapshot_device devices[REGION_DEVICES];
	unsigned device_count;
	struct snapshot_process processes[REGION_SLOTS]; /* living ones */
	unsigned process_count;
	uint64_t
		share_ns; /* the share file's time of change, as the processes have it in force; 0: not told */
};

/*
 * Reads the region at path: 0, -errno, or an outcome of region_open(). Only processes that live are listed (slot.h).
 * The structure is large (about 1.5 MB): do not put it on a stack.
 */
int snapshot_read(const char *path, struct snapshot *ret_snapshot) MUST_CHECK;

/*
 * The same for who looks from another container. Whether a process lives whose token cannot be seen from here, `lives`
 * tells by its PID in that namespace, which began at start_time; else it counts as alive.
 */
typedef bool snapshot_lives_fn(uint32_t pid, uint64_t pid_namespace, uint64_t start_time);
int snapshot_read_from_outside(
	const char *path, snapshot_lives_fn *lives, struct snapshot *ret_snapshot) MUST_CHECK;

/* The same of a region that the caller has open for reading, and that is a regular file. */
int snapshot_read_open(int fd, snapshot_lives_fn *lives, struct snapshot *ret_snapshot) MUST_CHECK;

/* A living process of the slice, as snapshot_visit() shows it. */
struct snapshot_member {
	uint32_t pid;		/* in the namespace below */
	uint32_t host_pid;	/* as HAMi's monitor reads it; 0: not known */
	uint64_t pid_namespace; /* inode number */
	uint64_t held_bytes;	/* of the device that was asked for; without one 0 */
	char command[17];
};
typedef void snapshot_visit_fn(const struct snapshot_member *member, void *argument);

/*
 * Shows every living process of the slice, and what it holds of the device (NULL: of none). A device
 * that the region does not know is held by nobody. Needs little memory; results as snapshot_read().
 */
int snapshot_visit(
	const char *path, const char *uuid, snapshot_visit_fn *visit, void *argument) MUST_CHECK;

/* The slice's share of the device's cores in percent, as its processes wrote it down; 0: none. */
int snapshot_core_percent(const char *path, const char *uuid, unsigned *ret_percent) MUST_CHECK;

/*
 * The bytes of one device that living processes of the slice hold, and its limit (0: none): for
 * a process that looks without being part of the slice, like a monitor inside the container. 0 and 0
 * where the region has no such device yet. Needs little memory.
 */
int snapshot_device_use(const char *path, const char *uuid, uint64_t *ret_used_bytes,
	uint64_t *ret_limit_bytes) MUST_CHECK;
