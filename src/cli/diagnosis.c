/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of vgpu doctor. */
#include "cli/diagnosis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void diagnosis_add(struct findings *findings, const char *format, ...)
{
	va_list args;

	if (findings->count == findings->capacity) {
		size_t capacity = findings->capacity ? 2 * findings->capacity : 8;
		char(*grown)[PROBLEM_BYTES] = reallocarray(findings->text, capacity, PROBLEM_BYTES);

		if (!grown)
			return;
		findings->text = grown;
		findings->capacity = capacity;
	}
	va_start(args, format);
	vsnprintf(findings->text[findings->count++], PROBLEM_BYTES, format, args);
	va_end(args);
}

void diagnosis_clear(struct diagnosis *d)
{
	for (size_t i = 0; i < d->view_count; i++)
		view_clear(&d->views[i]);
	for (size_t i = 0; i < d->patient_count; i++)
		inspect_clear(&d->patients[i].seen);
	free(d->views);
	free(d->patients);
	free(d->problems.text);
	free(d->notes.text);
}
