/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This node's own object at the API server.
 *
 * It is read and not watched: the kubelet renews its status without end, each time with all of its images, and the lock
 * must be asked for anew in any case when it matters.
 */
#include "plugin/cluster/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "plugin/devices/score.h"

#define LOG_TOPIC LOG_PODS

#define READ_NS	  (30ull * 1000000000)
#define AGAIN_NS  (5ull * 1000000000) /* after a failure */

struct node {
	struct kube_client *client;
	struct kube_call *call; /* NULL: nothing is asked */
	struct loop_timer timer;
	char *name, *path;
	struct node_state state;
	void (*changed)(void *context);
	void *context;
	bool is_unread; /* said once */
};

static void take_text(const json_t *annotations, const char *key, char **text)
{
	const char *value = json_string_value(json_object_get(annotations, key));

	free(*text);
	*text = value ? strdup(value) : NULL;
}

void node_take(struct node *node, const json_t *object)
{
	const json_t *annotations =
		json_object_get(json_object_get(object, "metadata"), "annotations");

	if (lock_parse(json_string_value(json_object_get(annotations, LOCK_ANNOTATION)),
		    &node->state.lock))
		log_warn("the node's lock is too long for one");
	take_text(annotations, NODE_REGISTER, &node->state.registered);
	take_text(annotations, SCORE_ANNOTATION, &node->state.scores);
	node->state.is_known = true;
	node->state.read_at_ns = clock_now_ns();
	node->changed(node->context);
}

void node_forget_lock(struct node *node)
{
	node->state.lock = (struct node_lock){.has_owner = false};
}

static void was_read(void *context, const struct kube_result *result)
{
	struct node *node = context;

	node->call = NULL;
	loop_timer_set(kube_client_loop(node->client), &node->timer,
		clock_now_ns() + (result->outcome ? AGAIN_NS : READ_NS));
	if (!result->outcome) {
		node->is_unread = false;
		node_take(node, result->body);
		return;
	}
	if (!node->is_unread && result->outcome != KUBE_E_CANCELLED)
		log_warn("the node cannot be read; it is tried again", STR("node", node->name),
			STR("why", result->words));
	node->is_unread = true;
}

static void read_node(void *context)
{
	struct node *node = context;

	if (kube_get(node->client, node->path, was_read, node, &node->call))
		loop_timer_set(
			kube_client_loop(node->client), &node->timer, clock_now_ns() + AGAIN_NS);
}

void node_read_in(struct node *node, uint64_t pause_ns)
{
	if (!node->call)
		loop_timer_set(
			kube_client_loop(node->client), &node->timer, clock_now_ns() + pause_ns);
}

int node_start(struct kube_client *client, const char *name, void (*changed)(void *context),
	void *context, struct node **ret_node)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->client = client;
	node->changed = changed;
	node->context = context;
	node->timer = (struct loop_timer){.due = read_node, .context = node};
	node->name = strdup(name);
	if (asprintf(&node->path, "/api/v1/nodes/%s", name) < 0)
		node->path = NULL;
	if (!node->name || !node->path) {
		node_stop(node);
		return -ENOMEM;
	}
	loop_timer_set(kube_client_loop(client), &node->timer, clock_now_ns());
	*ret_node = node;
	return 0;
}

void node_stop(struct node *node)
{
	if (!node)
		return;
	kube_cancel(node->call);
	loop_timer_clear(kube_client_loop(node->client), &node->timer);
	free(node->state.registered);
	free(node->state.scores);
	free(node->name);
	free(node->path);
	free(node);
}

const struct node_state *node_state(const struct node *node)
{
	return &node->state;
}

const char *node_name(const struct node *node)
{
	return node->name;
}

const char *node_path(const struct node *node)
{
	return node->path;
}
