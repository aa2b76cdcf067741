/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods would have to end so that one that fits nowhere does. */
#pragma once

#include <jansson.h>

#include "base/bits.h"
#include "plan/world.h"
#include "scheduler/filter.h"

/*
 * The node where the least important and the fewest pods have to go, and those: {"node", "ends": [{"namespace", "pod"}],
 * "is_asked"}. is_asked: kube-scheduler sees itself that a pod is in the way there, because the node has too few slices left; else it does
 * not ask, and ends none. *ret_object is NULL where ending pods does not help, or the pod ends none. -ENOMEM.
 */
int victims_find(struct world *world, const json_t *pod, const struct filter_request *request,
	json_t **ret_object) MUST_CHECK;
