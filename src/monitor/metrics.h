/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor tells. */
#pragma once

#include <stdio.h>

#include "gpu/nvml.h"
#include "monitor/audit.h"
#include "monitor/books.h"
#include "monitor/pods.h"
#include "monitor/scan.h"
#include "node/slice_metrics.h"

struct metrics_source {
	const char *node;
	const struct scan *scan;
	const struct scan *local; /* slices of `vgpu run` */
	const struct inventory *devices;
	const struct nvml_driver *nvml; /* NULL: there is none */
	const struct pod_names *pods;	/* NULL: there is no cluster */
	const struct audit *audit;
	struct books books;
	uint64_t now_s;	 /* of the machine's clock */
	bool has_legacy; /* the names before HAMi 2.9, too */
};

/*
 * Writes all families: HAMi's by their names and labels, for containers whose pod is known, or of all where there is no cluster; and
 * vgpu_slice_* for those that have our library.
 */
void metrics_write(FILE *out, const struct metrics_source *source);

/* What the driver says of a device, or of an instance. */
struct metrics_device {
	bool is_known, has_busy;
	uint64_t total_bytes, memory_bytes;
	unsigned busy_percent, controller_percent;
};

struct metrics_device metrics_read_device(const struct metrics_source *source, const char *uuid);

/*
 * Whose container it is; a slice of `vgpu run` has a name in the place of a pod's, and neither namespace nor container. Where there is a cluster and it does not know the pod, the container is on its
 * way out.
 */
bool metrics_find_pod(const struct metrics_source *source, const struct scan_container *container,
	struct slice_owner *ret_owner);
