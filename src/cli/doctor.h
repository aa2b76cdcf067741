/* SPDX-License-Identifier: Apache-2.0 */
/* What vgpu doctor has found, and how it says it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/inspect.h"
#include "cli/view.h"

#define PROBLEM_BYTES 512

/* A process that was looked at. */
struct patient {
	const struct view *view;	    /* its slice; NULL: it is in no slice's books */
	const struct view_process *process; /* in the slice */
	int pid;			    /* as seen from here; 0: not to be seen */
	struct inspection seen;
};

/* Findings in words. */
struct findings {
	char (*text)[PROBLEM_BYTES];
	size_t count, capacity;
};

struct diagnosis {
	struct view *views;
	size_t view_count;
	struct patient *patients;
	size_t patient_count;
	struct findings problems; /* what is wrong */
	struct findings notes;	  /* what cannot be kept, and why; nothing is wrong for that */
};

/* Adds one; where memory is short, none. */
void diagnosis_add(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What binds a process on a device: the smallest of each, and where it stands. */
struct limit {
	char uuid[SHARE_UUID_BYTES];
	uint64_t memory_bytes; /* SHARE_UNLIMITED: nothing */
	const char *memory_from;
	struct share_compute compute; /* zero: nothing */
	const char *compute_from;
};

/* The limits of a process on each device that anybody speaks of; at most SHARE_DEVICES. */
unsigned limits_find(const struct patient *patient, struct limit ret_limits[SHARE_DEVICES]);

/* The folder of turns of the process, as it sees it; NULL where it has none. */
const char *limits_turns(const struct patient *patient);

/* Other slices with which it takes turns on any of its devices; -errno where the folder cannot be read. */
int limits_count_others(const struct patient *patient, unsigned *ret_count) MUST_CHECK;

/* What of its limits cannot be kept, and why. */
void limits_judge(const struct patient *patient, struct findings *notes);

void diagnosis_show_text(const struct diagnosis *d);

/* One object; its keys only ever become more. What is not known is null. */
void diagnosis_show_json(const struct diagnosis *d);

/* Frees what it holds; fit for a zeroed one. */
void diagnosis_clear(struct diagnosis *d);
