/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod asks for its running slices:
 *
 *	cantaloupe.io/resize: {"main": {"gpumem": 4000, "gpucores": 50}}
 *
 * MiB and percent of each device that the container has; what is not said stays.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "kube/assignment.h"

#define WISH_ANNOTATION "cantaloupe.io/resize"

/* A pod: its containers, init containers first. */
struct wish_pod {
	const char *text;      /* the annotation */
	const char *allocated; /* the pod's allocation; NULL: it has none */
	const char *const *names;
	const struct assignment_need *needs;
	size_t count;
};

/* Which container a slot with devices is for. */
struct wish_slots {
	struct assignment assignment;
	size_t *containers;
};

#define WISH_SLOTS_NULL            \
	{                          \
		.containers = NULL \
	}

/* Reads an allocation of the pod. -EINVAL with err set; -ENOMEM. The caller clears in any case. */
int wish_read_slots(const struct wish_pod *pod, const char *allocation,
	struct wish_slots *ret_slots, struct err *err) MUST_CHECK;
void wish_clear_slots(struct wish_slots *slots);

/*
 * The pod's allocation with the amounts of containers that the wish names. The caller clears in any case. -EINVAL with err
 * set, a sentence for the pod, where the wish is not understood, or names what it cannot change; -ENOMEM.
 */
int wish_apply(
	const struct wish_pod *pod, struct wish_slots *ret_slots, struct err *err) MUST_CHECK;
