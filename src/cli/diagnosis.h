/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of vgpu doctor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/inspect.h"
#include "node/view.h"

#define PROBLEM_BYTES 1024

/* A process that was looked at. */
struct patient {
	const struct view *view;	    /* its slice; NULL: it is in no slice */
	const struct view_process *process; /* in the slice */
	int pid;			    /* as seen from here; 0: not to be seen */
	uint64_t
		stray_bytes; /* of a process in no slice that is seen: what NVML says that it holds */
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

/* Frees what it holds; fit for a zeroed one. */
void diagnosis_clear(struct diagnosis *d);
