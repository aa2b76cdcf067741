/* SPDX-License-Identifier: Apache-2.0 */
/* Events on pods, for people. */
#pragma once

#include "base/bits.h"
#include "kube/client.h"

struct event_log;

struct event {
	const char *namespace, *pod, *uid;
	const char *reason, *message;
	bool is_warning;
};

/* The client is one of their own, whose rate keeps events from delaying what matters. component: who says it. */
int event_log_new(
	struct kube_client *client, const char *component, struct event_log **ret_log) MUST_CHECK;

/* Accepts NULL. Before the end of the client. */
void event_log_free(struct event_log *log);

/*
 * Tells it; nobody waits. What was said of a pod lately is not said again. In a rush what went well is left out, and of
 * too many at once the last are lost; both are counted.
 */
void event_tell(struct event_log *log, const struct event *event);

uint64_t event_lost_count(const struct event_log *log);
uint64_t event_left_out_count(const struct event_log *log);
