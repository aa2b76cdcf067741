/* SPDX-License-Identifier: Apache-2.0 */
/* One slice as it is shown, whether in a table or in JSON. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/inventory.h"
#include "node/mapped.h"
#include "node/sites.h"
#include "node/user.h"
#include "policy/share.h"
#include "region/snapshot.h"

/* Rates between two readings. */
struct view_rates {
	bool is_known;
	double busy, budget_wait,
		turn_wait; /* parts of the time: 1 is all of it; waits are of all threads */
	double launches_per_s;
};

/* A device's compute time. */
struct view_compute {
	bool is_mps;	 /* parts of the multiprocessors are granted, and no time */
	bool is_metered; /* processes of the slice keep the figures below */
	uint64_t busy_ns, launches, budget_wait_ns, turn_wait_ns,
		lent_ns; /* since the region was made */
	struct share_compute
		granted; /* the smaller of what processes have applied and the share says */
	uint8_t priority;
	unsigned state; /* of enum region_compute_state */
	struct view_rates rates;
};

struct view_use {
	uint64_t used_bytes;
	uint64_t kind_bytes[CHARGE_KIND_COUNT];
};

struct view_device {
	char uuid[REGION_UUID_BYTES];
	int index;		     /* NVML's, or -1 where it does not know the device */
	char name[SHARE_UUID_BYTES]; /* short, or "" */
	uint64_t quota_bytes;	     /* 0: none */
	bool is_pending;	     /* the share says something else by now: */
	uint64_t share_quota_bytes;
	struct share_compute share_compute;
	uint64_t refusal_count, drift_count;
	uint64_t evicted_bytes; /* on the host; not in use */
	struct view_compute compute;
	struct view_use use;
};

struct view_process {
	int pid;	  /* as seen from here, or 0 where it is not */
	uint32_t own_pid; /* in its own PID namespace */
	char command[17];
	uint64_t notes; /* of enum region_note */
	struct view_use use[REGION_DEVICES];
	uint64_t evicted_bytes[REGION_DEVICES];
};

#define VIEW_NAME_BYTES 384

struct view {
	char name[256];
	char user[USER_NAME_BYTES]; /* to whom its folder belongs; "" for a region alone */
	bool is_others;		    /* that is not the user who looks */
	bool is_sim;		    /* it is on the simulated node */
	char region[4096];
	char mapped
		[MAPPED_PATH_BYTES];  /* how it is opened where it was found as a mapping; or "" */
	char folder[4096];	      /* of a slice of vgpu run; "" for a region alone */
	char turns[SHARE_PATH_BYTES]; /* by its share file; "" where that does not say */
	char mps[SHARE_PATH_BYTES];   /* likewise */
	uint64_t read_ns;	      /* when (CLOCK_MONOTONIC) */
	bool is_running;	      /* its vgpu run, or a process of it, lives */
	bool is_suspended;	      /* by its share file */
	struct view_device devices[REGION_DEVICES];
	unsigned device_count;
	struct view_process *processes;
	unsigned process_count;
};

/* Besides the outcomes of a region: the slice's share file cannot be read, or a process has a lease on it. */
enum { VIEW_E_SHARE = 1000, VIEW_E_SHARE_LEASED };

/*
 * Reads the site. 0 with a view that the caller clears; or -errno, or an outcome of region_open(),
 * with err set.
 */
int view_read(const struct site *site, const struct inventory *devices, struct view *ret_view,
	struct err *err) MUST_CHECK;

/* The same with the site's region, which is open for reading and a regular file. */
int view_read_open(const struct site *site, int region_fd, const struct inventory *devices,
	struct view *ret_view, struct err *err) MUST_CHECK;

/* Fills in the rates of `after` since `before`, a reading of the same slice. */
void view_compare(const struct view *before, struct view *after);

/* Waits so long and fills in the rates of those views that are metered; without such it does not wait. */
void view_measure(struct view *views, size_t count, uint64_t interval_ns);

/* The name by which a person calls the slice: NAME, or USER/NAME where it is another user's. */
void view_print_name(const struct view *view, char *to, size_t size);

/* Frees what it holds; fit for a zeroed one. */
void view_clear(struct view *view);
