/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor: which limits a process has, from where, and what of them cannot be kept. */
#pragma once

#include "base/bits.h"
#include "cli/diagnosis.h"
#include "policy/share.h"

/* The limits of a process on a device: the smallest of each, and its source. */
struct limit {
	char uuid[SHARE_UUID_BYTES];
	uint64_t memory_bytes; /* SHARE_UNLIMITED: nothing */
	const char *memory_from;
	struct share_compute compute; /* zero: nothing */
	const char *compute_from;
};

/* The limits of a process on each device that anybody speaks of; at most SHARE_DEVICES. */
unsigned limits_find(const struct patient *patient, struct limit ret_limits[SHARE_DEVICES]);

/* The pipe directory of the MPS daemon by its shares, as it sees it; NULL where none has any. */
const char *limits_mps(const struct patient *patient);

/* Whether that daemon lives. */
bool limits_mps_is_alive(const struct patient *patient);

/* The folder for time slices of the process, as it sees it; NULL where it has none. */
const char *limits_turns(const struct patient *patient);

/* Other slices that share its devices in time slices; -errno where the folder cannot be read. */
int limits_count_peers(const struct patient *patient, unsigned *ret_count) MUST_CHECK;

/* Adds the limits that cannot be kept, and why, to the notes; and faults to the problems. */
void limits_judge(const struct patient *patient, struct findings *notes, struct findings *problems);
