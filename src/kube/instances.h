/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which instances of GPUs (MIG) the containers of a pod have reserved, as the scheduler writes it into the pod's annotations,
 * and which they were given, as the device plugin adds it.
 *
 *	[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"1g.10gb","placement":{"start":0,"size":1},
 *	  "migUUID":"MIG-b","gpuInstanceID":7,"computeInstanceID":0}]
 *
 * The last three are there together or not at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"
#include "kube/assignment.h"

#define INSTANCES_ANNOTATION "hami.io/vgpu-mig-allocations"
#define INSTANCE_NAME_BYTES  24

struct instance {
	unsigned container; /* among all of the pod, init containers first */
	unsigned device;    /* in the container's slot of the assignment */
	char gpu[ASSIGNMENT_UUID_BYTES];
	char profile[INSTANCE_NAME_BYTES];
	unsigned start, size;		  /* in slices of memory */
	bool is_given;			  /* the rest is there */
	char uuid[ASSIGNMENT_UUID_BYTES]; /* "MIG-..." */
	unsigned instance, compute;	  /* NVML's numbers */
};

struct instances {
	struct instance *at;
	size_t count;
};

#define INSTANCES_NULL \
	{              \
		0      \
	}

/* Reads an annotation's text; "" and NULL are none. -EINVAL with err set, a sentence that names the entry; -ENOMEM. */
int instances_decode(const char *text, struct instances *ret_instances, struct err *err) MUST_CHECK;

/* The same of those entries that can be read: what an entry claims is not lost by another that is broken. -ENOMEM. */
int instances_decode_some(const char *text, struct instances *ret_instances) MUST_CHECK;

/* Accepts what is all zero. */
void instances_deinit(struct instances *instances);

/* Writes it as an annotation, which the caller frees. -ENOMEM. */
int instances_encode(const struct instances *instances, char **ret_text) MUST_CHECK;
