/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod's slices can be as large as it asks for. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "kube/wish.h"
#include "plugin/cluster/pods.h"
#include "plugin/grant/grant.h"

/*
 * Whether the pod may have that: no more of a device than is registered beside what all other pods of the node have, and no
 * more than its containers' own limits, unless the configuration lets it. -EINVAL with err set, a sentence for the pod.
 */
int capacity_check(const struct grant_node *node, const struct pods *pods, const struct pod *pod,
	const struct wish_slots *wanted, struct err *err) MUST_CHECK;
