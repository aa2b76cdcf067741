/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor tells. */
#pragma once

#include <stdio.h>

#include "gpu/nvml.h"
#include "monitor/pods.h"
#include "monitor/scan.h"

struct metrics_source {
	const char *node;
	const struct scan *scan;
	const struct inventory *devices;
	const struct nvml_driver *nvml; /* NULL: there is none */
	const struct pod_names *pods;	/* NULL: there is no cluster */
	uint64_t now_s;			/* of the machine's clock */
	bool has_legacy;		/* the names before HAMi 2.9, too */
};

/*
 * Writes all families: HAMi's by their names and labels, for containers whose pod is known, or of all where there is no cluster; and
 * vgpu_slice_* for those that have our library.
 */
void metrics_write(FILE *out, const struct metrics_source *source);
