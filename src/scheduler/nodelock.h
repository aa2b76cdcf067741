/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock on a node: an annotation that says which pod's devices the device plugin hands out next.
 *
 * The scheduler sets it before it binds a pod, and the device plugin removes it when it has served the pod's last
 * container, or has failed to. HAMi's scheduler and plugin speak the same way.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/bits.h"

#define NODELOCK_ANNOTATION "hami.io/mutex.lock"
#define NODELOCK_BYTES	    384 /* "2026-01-02T03:04:05.000000000Z,NAMESPACE,NAME" */

/* How long a pod that is not bound may have a lock: no scheduler takes so long from the lock to the binding. */
#define NODELOCK_BINDING_S 30

struct nodelock {
	char namespace[64], name[254]; /* of the pod; empty where the lock names none */
	int64_t set_s;		       /* Unix time; INT64_MAX: it is not understood */
};

/* False: it is none, because it is empty. What has no owner, or is longer than any lock, is one of nobody. */
bool nodelock_parse(const char *text, struct nodelock *ret_lock);

bool nodelock_is_of(const struct nodelock *lock, const char *namespace, const char *name);

/* The text of a lock that is set now. With a fraction of the second, so that no other lock of the pod looks the same. */
void nodelock_format(const struct timespec *now, const char *namespace, const char *name,
	char ret_text[NODELOCK_BYTES]);

enum nodelock_verdict {
	NODELOCK_HELD, /* it is to be waited for */
	NODELOCK_LEFT, /* nobody will remove it: it may be taken over */
};

/*
 * Whether a lock of somebody else still holds. pod: the one that it names; NULL: it is gone. seen_s: for how long the lock
 * has been there as this scheduler saw it, which counts where its own time is wrong or none.
 *
 * A pod that is bound to the node and waits for its devices keeps the lock however old that is: without it the plugin
 * would give it those of another pod. A pod that has ended, or has its devices, needs none.
 */
enum nodelock_verdict nodelock_judge(const struct nodelock *lock, const char *node,
	const json_t *pod, int64_t now_s, int64_t seen_s, int64_t timeout_s);
