/* SPDX-License-Identifier: Apache-2.0 */
/* What slices use and were granted, as metrics for Prometheus. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "node/view.h"

/* The container that a slice is of; "" where that is not known. */
struct slice_owner {
	const char *namespace, *pod, *container;
};

/*
 * Writes the families vgpu_slice_*, each with a sample for every device of every slice. Units are in the names: bytes,
 * seconds, parts of one. A quota, a part or a cap that there is not has no sample. Counters count since the slice's region was made.
 * The owners are in the order of the views; NULL: there are none.
 */
void slice_metrics_write(
	FILE *out, const struct view *const *views, const struct slice_owner *owners, size_t count);
