/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pod a request of the kubelet is for. The kubelet says how many slices it wants, and not for whom.
 *
 * The scheduler's lock on the node names the pod that it has bound last; it is the one thing here that no tenant can
 * write. It is not enough alone, because it can be left over, and because a pod that the scheduler knows nothing of can
 * be asked for meanwhile. The kubelet admits pods one after another, so the pod that it asks for is the first that waits.
 */
#pragma once

#include "base/err.h"
#include "plugin/cluster/lock.h"
#include "plugin/cluster/pod.h"

struct choose_request {
	struct pod *first; /* of all that are known */
	const char *node_name;
	const struct node_lock *lock;
	unsigned slices;
	bool requires_lock; /* the pod's own word is nothing without it */
	bool is_settled;    /* nothing is on its way any more: the answer is never CHOICE_UNSURE */
};

enum choice {
	CHOICE_POD, /* it is this one */
	CHOICE_UNSURE, /* it is, unless one before it still waits: the state of that one may be on its way */
	CHOICE_NOBODY,	 /* no pod that waits has a reservation */
	CHOICE_MISMATCH, /* it is this one, whose reservation does not fit it or the request */
};

/* *ret_pod is NULL for CHOICE_NOBODY. */
enum choice choose_pod(const struct choose_request *request, struct pod **ret_pod);

/* Where the lock's pod waits, the one that waits before it; NULL: there is none. */
const struct pod *choose_before_owner(const struct choose_request *request);

/* Why a reservation is CHOICE_MISMATCH; the text may be the one in err. */
const char *choose_explain(const struct pod *pod, struct err *err);

/* Whether the kubelet may still ask for slices of it. */
bool choose_is_waiting(const struct pod *pod);
