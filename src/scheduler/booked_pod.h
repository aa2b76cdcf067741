/* SPDX-License-Identifier: Apache-2.0 */
/* What the books keep of a pod: one piece of memory, because a cluster has many pods. */
#pragma once

#include "scheduler/books.h"
#include "scheduler/hash.h"

struct booked_pod {
	struct books_node *node;
	struct quotas_namespace *namespace;
	struct booked_pod *next, **link; /* of the node's pods */
	const char *uid, *name;
	const struct books_instance *instances;
	struct books_standing standing;
	struct fit_room wished;
	uint32_t charge_count, instance_count;
	bool has_doubtful_instances, is_aside, is_marked, is_lost;
	UT_hash_handle hh;
	struct books_charge charges[];
};

/* A copy with nothing of the books in it, for free(); NULL: no memory. */
struct booked_pod *booked_pod_new(const struct books_pod *from);

/* What its devices have of it. Where that cannot be known nothing more is put on such a device until the pod is gone. */
void booked_pod_charge(const struct booked_pod *pod, struct registry *registry);
