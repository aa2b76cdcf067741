/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's record against the slices on this node, and against what pods' annotations assign.
 *
 * The kubelet's word is how many slices a container was given: on which devices they are is the scheduler's, and the kubelet's IDs need not
 * name those devices. So numbers are compared with the kubelet, and devices with the annotation.
 */
#pragma once

#include <pod_resources.pb-c.h>
#include <stdio.h>

#include "monitor/audit.h"
#include "monitor/pods.h"
#include "monitor/scan.h"

struct books {
	const V1__ListPodResourcesResponse *answer; /* NULL: none came */
	const char *resource;			    /* "nvidia.com/gpu" */
	const struct pod_names *pods;
};

/* Tells the audit what is wrong of each container that runs and is listed. */
void books_compare(const struct books *books, const struct scan_place *place,
	const struct scan *scan, struct audit *audit);

/* The families of books.def. */
void books_write(const struct books *books, FILE *out);
