/* SPDX-License-Identifier: Apache-2.0 */
/* Instances that pods have reserved by their annotations, and those that one container is given of them. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "kube/instances.h"
#include "plugin/host/capability.h"
#include "plugin/cluster/pod.h"
#include "policy/share.h"

/* What a container is given, in the order of its slot. */
struct claims_given {
	struct instance instances[SHARE_DEVICES];
	struct capability capabilities[SHARE_DEVICES];
	unsigned count;
	char *annotation; /* of the pod, with what was made; the caller frees it */
	const struct pod *
		holder; /* what is known to have the place of one that cannot be had; NULL: nobody */
};

struct claims_wanted {
	const struct pod *first; /* of all that are known */
	const struct pod *pod;
	unsigned container; /* among all of the pod */
	const struct assignment_slot *slot;
};

/* Of all pods that are not over, but for those of one container, where it is not NULL. The caller ends the list. -ENOMEM. */
int claims_list(const struct pod *first, const struct claims_wanted *but,
	struct instances *ret_claims) MUST_CHECK;

/*
 * Whether a pod that is not over has a slice of the GPU and does not say which instance that is, as those do not that HAMi up to 2.9 has
 * placed.
 */
bool claims_are_unknown(const struct pod *first, const char *gpu);

/* What is reserved for the container in its pod's list becomes what it is to be given. -EINVAL with err set. */
int claims_choose(const struct claims_wanted *wanted, const struct instances *list,
	struct claims_given *given, struct err *err) MUST_CHECK;

/* -EBUSY with err set: another container was given such a place. */
int claims_check(const struct instances *claims, const struct claims_given *given,
	struct err *err) MUST_CHECK;

/*
 * The pod for which what is to be given cannot be had: it was given such a place, or else reserves one or does not say which
 * it has. What it says is its tenant's word, and it may be gone. NULL: there is none.
 */
const struct pod *claims_find_holder(
	const struct claims_wanted *wanted, const struct claims_given *given);

/* Sets the annotation: the pod's list with what was made. -ENOMEM. */
int claims_record(const struct instances *list, const struct claims_wanted *wanted,
	struct claims_given *given) MUST_CHECK;
