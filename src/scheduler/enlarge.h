/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a namespace's quota leaves what a pod asks for its running slices (kube/wish.h). */
#pragma once

#include <jansson.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/fit.h"
#include "scheduler/demand.h"

/*
 * Whether the pod, as it is to be, takes no more of the room beyond what it has. One without a wish takes none, and one that
 * waits for its slices may not have one.
 * -EINVAL with err set, a sentence for whoever changes the pod; -ENOMEM.
 */
int enlarge_check(const struct demand_rules *rules, const json_t *pod, const struct fit_room *room,
	struct err *err) MUST_CHECK;

/*
 * What the pod wishes for beyond what it has: it will have that when there is room on its node, so the quota counts it from now on.
 * None where the wish is not understood, which nobody carries out. -ENOMEM.
 */
int enlarge_wished(const struct demand_rules *rules, const json_t *pod,
	struct fit_room *ret_wished) MUST_CHECK;
