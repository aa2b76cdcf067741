/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kube-scheduler beside this program leads, by its lease.
 *
 * Only that one asks this program, so there is no election of its own: two leaders at different places would be worse than
 * none. The lease's holder is "HOSTNAME_" and a number of kube-scheduler's.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"

struct lease;

struct lease_request {
	const char *namespace, *name;
	const char *host; /* of both */
};

/* The change is told from the loop. The request is copied. -ENOMEM. */
int lease_start(struct kube_client *client, const struct lease_request *request,
	void (*changed)(void *context, bool leads), void *context,
	struct lease **ret_lease) MUST_CHECK;

/* Accepts NULL. */
void lease_stop(struct lease *lease);
