/* SPDX-License-Identifier: Apache-2.0 */
/* A change of a node, for kube-scheduler to see that there is room. */
#include "scheduler/nudge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "scheduler/object.h"

#define LOG_TOPIC LOG_PODS
#define SECOND_NS 1000000000ull
#define LATE_NS	  (5 * SECOND_NS) /* what the API server says comes sooner to all who listen */

struct nudge {
	struct kube_client *client;
	struct kube_call *call; /* NULL: none is under way */
	struct loop_timer timer;
	char *node; /* the last that got room; NULL: none since the last call */
	uint64_t refused_ns, called_ns;
	bool was_refused; /* since the last call */
};

static void was_called(void *context, const struct kube_result *result)
{
	struct nudge *nudge = context;

	nudge->call = NULL;
	if (result->outcome)
		log_debug("kube-scheduler was not told of room", STR("why", result->words));
}

static void due(void *context)
{
	struct nudge *nudge = context;
	_cleanup_free_ char *node = nudge->node, *path = NULL;
	char now[24];
	json_t *patch;

	nudge->node = NULL;
	nudge->was_refused = false;
	nudge->called_ns = clock_now_ns();
	if (nudge->call || !node)
		return;
	snprintf(now, sizeof(now), "%lld", (long long)time(NULL));
	patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", NUDGE_ANNOTATION, now);
	if (asprintf(&path, "/api/v1/nodes/%s", node) < 0)
		path = NULL;
	if (!path || !patch ||
		kube_patch(nudge->client, path, patch, NULL, was_called, nudge, &nudge->call))
		log_warn("no memory to tell kube-scheduler of room");
	json_decref(patch);
}

int nudge_new(struct kube_client *client, struct nudge **ret_nudge)
{
	struct nudge *nudge = calloc(1, sizeof(*nudge));

	if (!nudge)
		return -ENOMEM;
	nudge->client = client;
	nudge->timer = (struct loop_timer){.due = due, .context = nudge};
	*ret_nudge = nudge;
	return 0;
}

void nudge_free(struct nudge *nudge)
{
	if (!nudge)
		return;
	kube_cancel(nudge->call);
	loop_timer_clear(kube_client_loop(nudge->client), &nudge->timer);
	free(nudge->node);
	free(nudge);
}

void nudge_refused(struct nudge *nudge)
{
	nudge->was_refused = true;
	nudge->refused_ns = clock_now_ns();
}

/* At most once a second, and a moment later: more may come together. */
void nudge_freed(struct nudge *nudge, const char *node, bool was_told)
{
	uint64_t now = clock_now_ns(), at = now + SECOND_NS / 10;

	if (!object_is_name(node) || !nudge->was_refused ||
		(was_told && now - nudge->refused_ns > LATE_NS))
		return;
	free(nudge->node);
	nudge->node = strdup(node);
	if (at < nudge->called_ns + SECOND_NS)
		at = nudge->called_ns + SECOND_NS;
	if (!nudge->timer.is_in)
		loop_timer_set(kube_client_loop(nudge->client), &nudge->timer, at);
}
