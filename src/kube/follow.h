/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a collection, and every change of them from then on: a list in pages and a watch behind it,
 * which goes on where it was when the connection breaks, the server restarts, or it ends by itself. Where the
 * server no longer knows that place, the collection is listed anew.
 *
 * Promise: after complete() the objects that were present since begin() are what the collection held at one
 * moment, and each later change is told, once and in order. No object is kept here.
 */
#pragma once

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bits.h"
#include "kube/client.h"

struct kube_follow;

/*
 * Callbacks come from loop_run(). The object is gone when the callback returns. Each may call
 * kube_follow_stop().
 */
struct kube_follow_events {
	/*
	 * A list begins: what was told before may be gone without a word. Again, where a list did not come to
	 * its end.
	 */
	void (*begin)(void *context);
	/*
	 * is_present: as it is now, whether new, changed or told before; else: as it was when it was deleted.
	 */
	void (*object)(void *context, bool is_present, const json_t *object);
	/* The list is at its end: what was not present since begin() is gone. */
	void (*complete)(void *context);
	/*
	 * A list or a watch failed; it is tried again after a pause. After KUBE_E_CANCELLED nothing comes any
	 * more, and kube_follow_stop() is still to be called.
	 */
	void (*trouble)(void *context, enum kube_outcome outcome, const char *words);
};

struct kube_follow_request {
	const char *path;  /* of the collection: "/api/v1/pods" */
	const char *query; /* selectors, escaped: "fieldSelector=spec.nodeName%3Dn1"; NULL: all */
	unsigned
		page_objects; /* in one page of a list; 0: 200. A page is in memory as a whole, for a moment */
	/* A watch that says nothing for so long is given up and begun anew: its connection may be dead. 0: 150 s. */
	unsigned silence_s;
};

/* Begins; the request is copied. -ENOMEM. */
int kube_follow_start(struct kube_client *client, const struct kube_follow_request *request,
	const struct kube_follow_events *events, void *context,
	struct kube_follow **ret_follow) MUST_CHECK;

/* A node has a hundred pods or more, of 10 KiB each and some ten times that when they are read. */
#define KUBE_FOLLOW_PODS_OF_PAGE 16

/* The pods that are bound to the node. -EINVAL where it can have no such name. */
static inline int kube_follow_pods_of(struct kube_client *client, const char *node_name,
	const struct kube_follow_events *events, void *context, struct kube_follow **ret_follow)
{
	char query[300];
	int length = snprintf(query, sizeof(query), "fieldSelector=spec.nodeName%%3D%s", node_name);

	if (length < 0 || (size_t)length >= sizeof(query))
		return -EINVAL;
	return kube_follow_start(client,
		&(struct kube_follow_request){.path = "/api/v1/pods",
			.query = query,
			.page_objects = KUBE_FOLLOW_PODS_OF_PAGE},
		events, context, ret_follow);
}

/* Ends it; no callback comes any more. Accepts NULL. Before the end of the client. */
void kube_follow_stop(struct kube_follow *follow);

/* The time of the server's last message (CLOCK_MONOTONIC; 0: none); it sends one about once a minute. */
uint64_t kube_follow_heard_ns(const struct kube_follow *follow);
