/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kube-scheduler beside this program leads.
 *
 * The time that a lease holds is counted from when this program saw it renewed, by its own clock: clocks of other machines
 * are not asked.
 */
#include "scheduler/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/follow.h"

#define LOG_TOPIC LOG_PODS
#define SECOND_NS 1000000000ull

struct lease {
	struct kube_client *client;
	struct kube_follow *follow;
	struct loop_timer end;
	char *name, *host, *renewed; /* the text of when it was renewed last */
	bool leads, is_seen;
	void (*changed)(void *context, bool leads);
	void *context;
};

static void set(struct lease *lease, bool leads)
{
	if (lease->leads == leads)
		return;
	lease->leads = leads;
	log_info(leads ? "this replica leads" : "this replica does not lead any more");
	lease->changed(lease->context, leads);
}

static void ended(void *context)
{
	set(context, false);
}

/* The name of a host may be the beginning of another's. */
static bool is_ours(const struct lease *lease, const char *holder)
{
	size_t length = strlen(lease->host);

	return holder && !strncmp(holder, lease->host, length) &&
	       (!holder[length] || holder[length] == '_');
}

static void object_came(void *context, bool is_present, const json_t *object)
{
	struct lease *lease = context;
	const json_t *spec = json_object_get(object, "spec");
	const char *name =
		json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
	const char *renewed = json_string_value(json_object_get(spec, "renewTime"));
	json_int_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
	bool is_new = renewed && (!lease->renewed || strcmp(renewed, lease->renewed) != 0);

	if (!name || strcmp(name, lease->name) != 0)
		return;
	lease->is_seen = true;
	if (!is_present || seconds <= 0 || seconds > 86400 ||
		!is_ours(lease, json_string_value(json_object_get(spec, "holderIdentity")))) {
		loop_timer_clear(kube_client_loop(lease->client), &lease->end);
		set(lease, false);
		return;
	}
	if (!is_new)
		return;
	free(lease->renewed);
	lease->renewed = strdup(renewed);
	loop_timer_set(kube_client_loop(lease->client), &lease->end,
		clock_now_ns() + (uint64_t)seconds * SECOND_NS);
	set(lease, true);
}

static void list_begins(void *context)
{
	struct lease *lease = context;

	lease->is_seen = false;
}

static void list_is_complete(void *context)
{
	struct lease *lease = context;

	if (!lease->is_seen)
		set(lease, false);
}

static void trouble_came(void *context, enum kube_outcome outcome, const char *words)
{
	if (outcome != KUBE_E_CANCELLED)
		log_warn("the lease cannot be followed; it is tried again", STR("why", words));
}

int lease_start(struct kube_client *client, const struct lease_request *request,
	void (*changed)(void *context, bool leads), void *context, struct lease **ret_lease)
{
	static const struct kube_follow_events events = {
		list_begins, object_came, list_is_complete, trouble_came};
	struct lease *lease = calloc(1, sizeof(*lease));
	_cleanup_free_ char *path = NULL, *query = NULL;
	int result = -ENOMEM;

	if (!lease)
		return -ENOMEM;
	lease->client = client;
	lease->changed = changed;
	lease->context = context;
	lease->end = (struct loop_timer){.due = ended, .context = lease};
	lease->name = strdup(request->name);
	lease->host = strdup(request->host);
	if (asprintf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases",
		    request->namespace) < 0)
		path = NULL;
	if (asprintf(&query, "fieldSelector=metadata.name%%3D%s", request->name) < 0)
		query = NULL;
	if (path && query && lease->name && lease->host)
		result = kube_follow_start(client,
			&(struct kube_follow_request){.path = path, .query = query}, &events, lease,
			&lease->follow);
	if (result)
		lease_stop(lease);
	else
		*ret_lease = lease;
	return result;
}

void lease_stop(struct lease *lease)
{
	if (!lease)
		return;
	kube_follow_stop(lease->follow);
	loop_timer_clear(kube_client_loop(lease->client), &lease->end);
	free(lease->name);
	free(lease->host);
	free(lease->renewed);
	free(lease);
}
