/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be shown of one slice, whether in a table or in JSON. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/devices.h"
#include "cli/survey.h"
#include "region/snapshot.h"

struct view_use {
	uint64_t used_bytes;
	uint64_t kind_bytes[CHARGE_KIND_COUNT];
};

struct view_device {
	char uuid[REGION_UUID_BYTES];
	int index;		     /* NVML's, or -1 where it does not know the device */
	char name[SHARE_UUID_BYTES]; /* short, or "" */
	uint64_t quota_bytes;	     /* 0: none */
	uint64_t refusal_count, drift_count;
	struct view_use use;
};

struct view_process {
	int pid;	  /* as seen from here, or 0 where it is not */
	uint32_t own_pid; /* in its own PID namespace */
	char command[17];
	uint64_t notes; /* of enum region_note */
	struct view_use use[REGION_DEVICES];
};

struct view {
	char name[256];
	char region[4096];
	bool is_running; /* its vgpu run, or a process of it, lives */
	struct view_device devices[REGION_DEVICES];
	unsigned device_count;
	struct view_process *processes;
	unsigned process_count;
};

/*
 * Reads the site. 0 with a view that the caller clears; or -errno, or an outcome of region_open(),
 * with err set.
 */
int view_read(const struct site *site, const struct devices *devices, struct view *ret_view,
	struct err *err) MUST_CHECK;

/* Frees what it holds; fit for a zeroed one. */
void view_clear(struct view *view);
