/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extender's part of kube-scheduler: POST /filter, POST /bind and POST /preempt.
 *
 * Filter decides, begins to write the promise onto the pod, and answers. What was decided counts from that moment on, so the next
 * pod finds less. Bind waits for the writing. A promise ends when the pod is filtered again, is deleted, could not be written or
 * bound, or was not bound in time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"
#include "net/http_server.h"
#include "scheduler/cluster.h"
#include "kube/event.h"
#include "scheduler/measure.h"
#include "scheduler/settings.h"

/* What both have at hand. */
struct extender {
	struct loop *loop;
	struct kube_client *client;
	struct cluster *cluster;
	struct event_log *events;
	const struct settings *settings;
	struct measure *measure;
	struct waiting *waiting;
	bool leads; /* else it answers with an error */
	struct bind *binds;
};

/* A whole request; it is answered at once or later. */
void extender_filter(struct extender *extender, struct http_call *call);
void extender_bind(struct extender *extender, struct http_call *call);
void extender_preempt(struct extender *extender, struct http_call *call);

/* The call must not be answered any more. */
void extender_gone(struct http_call *call);

/* Binds that are under way. */
size_t extender_bind_count(const struct extender *extender);

/* Ends them without an answer. */
void extender_stop_binds(struct extender *extender);

/* The node's lock has changed. */
void extender_lock_changed(struct extender *extender, struct cluster_node *node);

/* For these parts alone. */

/* The body as an object; NULL: it is none, and err says why. The caller releases it. */
json_t *extender_read(struct http_call *call, struct err *err);

/* Answers with this object, which it takes; NULL: there was no memory. */
void extender_answer(struct http_call *call, json_t *answer);

/* Why no pod can be served now; NULL: one can. */
const char *extender_trouble(const struct extender *extender);

/* Ends the waiting for a lock of a bind; false: it is being bound, and cannot be stopped. */
bool extender_abort_bind(struct bind *bind, const char *why);
