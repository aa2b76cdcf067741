/* SPDX-License-Identifier: Apache-2.0 */
/* What vgpu doctor has found, and how it says it. */
#pragma once

#include <stddef.h>

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

struct diagnosis {
	struct view *views;
	size_t view_count;
	struct patient *patients;
	size_t patient_count;
	char (*problems)[PROBLEM_BYTES];
	size_t problem_count, problem_capacity;
};

/* Notes that something is wrong; where memory is short, only that there is. */
void diagnosis_add(struct diagnosis *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void diagnosis_show_text(const struct diagnosis *d);

/* One object; its keys only ever become more. What is not known is null. */
void diagnosis_show_json(const struct diagnosis *d);

/* Frees what it holds; fit for a zeroed one. */
void diagnosis_clear(struct diagnosis *d);
