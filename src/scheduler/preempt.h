/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods of a node have to go so that another fits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "scheduler/books.h"
#include "scheduler/demand.h"

struct preempt_request {
	const struct demand *demand;
	int32_t priority; /* of the pod */
	const char *node;
	const char *const *victims; /* the UIDs of those that kube-scheduler would end */
	size_t victim_count;
};

/* Its texts are the request's and the books'. */
struct preempt_answer {
	bool fits;	   /* once these are gone */
	const char **uids; /* the caller's to free */
	size_t count;
};

/* Whether the node has fewer slices left than the pod asks for, which kube-scheduler sees, too. NULL: it has none. */
bool preempt_lacks_slices(const struct fit_node *node, const struct fit_pod *pod);

/*
 * Decides it; the books are as before. A pod without devices gets what is proposed. Pods of a lower priority may be ended, those that are proposed and others, and as few
 * as will do: the more important stay. What is proposed and has no devices is needed for reasons that are not known here, and
 * goes. So does what has devices, but for a node whose slices are all given out: then kube-scheduler wanted slices, and which
 * is decided here. -ENOMEM.
 */
int preempt_choose(struct books *books, const struct preempt_request *request,
	struct preempt_answer *ret_answer) MUST_CHECK;
