/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process may have: the environment and the share files, and their changes.
 *
 * The quota of a device is the smallest that applies: SHARE_SYSTEM_PATH's, VGPU_SHARE's, and the
 * environment's (its own index's, else the general one). So the environment can lower what a share
 * file grants and never raise it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "policy/options.h"

#define QUOTA_UNLIMITED UINT64_MAX

enum quota_mode {
	QUOTA_NONE,   /* nothing was asked for: step aside */
	QUOTA_SET,    /* quotas hold, or the slice at least wants books */
	QUOTA_BROKEN, /* a quota was asked for and cannot be known: refuse all memory */
};

/* Reads options and share files, once a process; the first call logs what is wrong with them. */
enum quota_mode quota_start(void);

/* For a child of fork(): no lock is held. What was read stays. */
void quota_reset_after_fork(void);

/*
 * Whether a share names its devices one by one, so that there may be others that are not the slice's; and whether a device
 * is the slice's, by all shares that are in force.
 */
bool quota_hides(void);
bool quota_is_granted(const char *uuid);

/*
 * The quota of the device with this UUID in bytes, or QUOTA_UNLIMITED. -ENODEV where an indexed
 * option is set and NVML does not tell which device the index means.
 */
int quota_memory_bytes(const char *uuid, uint64_t *ret_bytes) MUST_CHECK;

/* Whether a share says them, which an operator can change at any time; what the environment says stays. */
bool quota_may_change(void);

/* What the environment said; after quota_start(). */
const struct options *quota_options(void);

/* The slice's region file. Like the other names below it is what it was at quota_start(), but for quota_take_own_region(). */
const char *quota_region_path(void);

/* Where nothing names it: it is region_own_path() from now on, as another user has made a file where it was to be. */
void quota_take_own_region(void);

/* Whether neither a share nor an option names it. */
bool quota_has_default_region(void);

/* SHARE_SYSTEM_PATH where there is such a share, else NULL: of one that the environment names anybody may be the owner. */
const char *quota_system_share(void);

/* The time of change of the share file of VGPU_SHARE that is in force; 0: none was read. */
uint64_t quota_share_ns(void);

/*
 * Looks whether a share file has changed, at most every QUOTA_CHECK_NS unless is_urgent, and reads
 * it again. A file that has become unreadable keeps its last meaning. Returns whether quotas may
 * have changed.
 */
#define QUOTA_CHECK_NS 50000000u
bool quota_refresh(bool is_urgent);

/* What a slice may have of a device's compute time, by all that applies to it: the least of each. */
struct quota_limits {
	uint16_t cores_permille; /* sure to get; 0: nothing is promised */
	uint16_t cap_permille;	 /* never more; 1000: no limit */
	uint16_t weight;
	uint8_t priority; /* 0 goes first */
	bool is_suspended;
	uint64_t burst_ns; /* may be saved up */
};

/*
 * A share with a daemon of MPS grants parts of the multiprocessors: for its clients, which get no
 * more than that, its compute limits do not hold.
 * is_contended: what the region's utilization_switch says; where the policy is "default" and it is off, the
 * environment's limit does not hold. -ENODEV as above.
 */
int quota_compute(const char *uuid, bool is_contended, struct quota_limits *ret_limits) MUST_CHECK;

/* Whether descriptors of device memory may be given out, which nobody can follow everywhere. */
bool quota_may_export(void);

/* Whether a share says that the slice is suspended. */
bool quota_is_suspended(void);

/* Whether handles that no process of the slice gave out may be opened: each share that there is says so, or there is no quota of memory. */
bool quota_may_import(void);

/* The folder of turns, or NULL, as it is for clients of MPS; and the slice's name, or "". */
const char *quota_turns_path(void);
const char *quota_slice_name(void);
