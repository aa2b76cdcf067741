/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /bind: the end of the promise's writing, a turn at the node, then the binding.
 *
 * The phase and the time of the binding come with the binding itself, so that a pod has them exactly if it is bound. A bind that
 * fails takes back the lock, the promise, and the pod's annotations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/bind_calls.h"
#include "scheduler/extender.h"
#include "scheduler/object.h"
#include "scheduler/turn.h"

#define ASK_NS	   1000000000ull /* between two questions whether a pod is bound */
#define TRIES_MOST 5		 /* of a pod that others change at the same time */

/*
 * Each has a connection, and those for Filter and the webhook, which may come from the same address, shall have some left. More than
 * these fail at once, and kube-scheduler comes back with them.
 */
#define WAITING_MOST 512

struct bind {
	struct extender *extender;
	struct http_call *http; /* NULL: it is not to be answered any more */
	struct kube_call *call;
	struct loop_timer timer;
	struct hold *hold; /* NULL: the pod has no devices */
	struct turn *turn; /* NULL: it has none, or does not need it */
	char *namespace, *name, *uid, *node_name;
	char *version; /* of the pod, which the binding names; NULL: none was sent */
	uint64_t began_ns;
	unsigned tries;
	bool may_come;	 /* nobody knows whether the server will carry out the binding */
	bool is_unknown; /* whether it is bound */
	struct bind *next, **link;
};

/* unlocks: the node's lock is removed, where it was set. */
static void free_bind(struct bind *bind, bool unlocks)
{
	kube_cancel(bind->call);
	loop_timer_clear(bind->extender->loop, &bind->timer);
	turn_end(bind->turn, unlocks);
	if (bind->link) {
		*bind->link = bind->next;
		if (bind->next)
			bind->next->link = bind->link;
	}
	if (bind->hold)
		holds_unbind(cluster_holds(bind->extender->cluster), bind->hold);
	free(bind->namespace);
	free(bind->name);
	free(bind->uid);
	free(bind->node_name);
	free(bind->version);
	free(bind);
}

static void answer(
	struct extender *extender, struct http_call *http, uint64_t began_ns, const char *error)
{
	measure_add(extender->measure, MEASURE_BIND, began_ns, *error);
	if (http)
		extender_answer(http, json_pack("{s:s%}", "Error", error, strnlen(error, 1000)));
}

static void tell(const struct bind *bind, const char *reason, const char *message, bool is_warning)
{
	event_tell(bind->extender->events, &(struct event){.namespace = bind->namespace,
						   .pod = bind->name,
						   .uid = bind->uid,
						   .reason = reason,
						   .message = message,
						   .is_warning = is_warning});
}

/* Gives everything back. A replica that leads no more has nothing to say about a pod's annotations. */
static void fail(struct bind *bind, const char *why)
{
	struct extender *extender = bind->extender;
	struct http_call *http = bind->http;
	struct hold *hold = bind->hold;
	uint64_t began_ns = bind->began_ns;
	char words[600];

	snprintf(words, sizeof(words), "%s", why);
	tell(bind, "BindingFailed", words, true);
	if (hold)
		holds_end(cluster_holds(extender->cluster), hold, extender->leads);
	free_bind(bind, true);
	answer(extender, http, began_ns, words);
}

static void succeed(struct bind *bind)
{
	struct extender *extender = bind->extender;
	struct http_call *http = bind->http;
	uint64_t began_ns = bind->began_ns;
	char words[600];

	snprintf(words, sizeof(words), "Successfully binding node [%.250s] to %.63s/%.253s",
		bind->node_name, bind->namespace, bind->name);
	tell(bind, "BindingSucceed", words, false);
	/* what it takes stays in the books, and from now on is what the pod's object says */
	if (bind->hold)
		holds_forget(cluster_holds(extender->cluster), bind->hold);
	free_bind(bind, false);
	answer(extender, http, began_ns, "");
}

static int read_pod(struct bind *bind, kube_done_fn *done)
{
	return bind_calls_read_pod(
		bind->extender->client, bind->namespace, bind->name, done, bind, &bind->call);
}

static bool is_pod_of(const struct bind *bind, const json_t *pod)
{
	const char *uid = object_text(pod, "uid");

	return *uid && (!*bind->uid || !strcmp(uid, bind->uid));
}

/*
 * Nobody knows whether it is bound. Lock, promise and annotations stay, because a pod that is bound needs them, and it is asked
 * until it is known; so long the pod is not promised anything else, and no other is bound on the node.
 */
static void leave_unknown(struct bind *bind, const char *why)
{
	struct http_call *http = bind->http;
	char words[600];

	snprintf(words, sizeof(words), "it is not known whether the pod is bound: %.500s", why);
	bind->is_unknown = true;
	bind->http = NULL;
	loop_timer_set(bind->extender->loop, &bind->timer, clock_now_ns() + ASK_NS);
	if (!http)
		return;
	tell(bind, "BindingFailed", words, true);
	answer(bind->extender, http, bind->began_ns, words);
}

static void was_confirmed(void *context, const struct kube_result *result);

static struct bind_target target_of(const struct bind *bind)
{
	return (struct bind_target){bind->namespace, bind->name, bind->uid, bind->node_name,
		bind->version, bind->hold ? bind->hold->annotations : NULL};
}

static void confirm(struct bind *bind)
{
	if (read_pod(bind, was_confirmed))
		leave_unknown(bind, "no memory");
}

static void was_bound(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	bind->may_come =
		result->outcome == KUBE_E_UNCERTAIN || result->outcome == KUBE_E_NOT_UNDERSTOOD;
	if (!result->outcome)
		succeed(bind);
	else if (bind->may_come || result->outcome == KUBE_E_EXISTS ||
		 result->outcome == KUBE_E_CONFLICT)
		confirm(bind);
	else
		fail(bind, result->words);
}

static void send_binding(struct bind *bind, const char *version)
{
	struct bind_target target;

	free(bind->version);
	bind->version = strdup(version);
	target = target_of(bind);
	if (!bind->extender->leads)
		fail(bind, "this replica does not lead any more");
	else if (!bind->version ||
		 bind_calls_bind(bind->extender->client, &target, was_bound, bind, &bind->call))
		fail(bind, "no memory");
}

/* A binding that comes late names a version that the pod has no more. */
static void was_renewed(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	if (!result->outcome || result->outcome == KUBE_E_NOT_FOUND)
		fail(bind, "the binding was not carried out");
	else if (result->outcome == KUBE_E_CONFLICT && ++bind->tries <= TRIES_MOST)
		confirm(bind);
	else
		leave_unknown(bind, result->words);
}

/*
 * The server may still be about to bind it. What was promised is given back only when it cannot any more: another pod would
 * have the devices, and the lock.
 */
static void renew(struct bind *bind)
{
	struct bind_target target = target_of(bind);

	if (bind_calls_renew_pod(bind->extender->client, &target, was_renewed, bind, &bind->call))
		leave_unknown(bind, "no memory");
}

/* A pod that has changed since Filter is bound as it is now, under a lock that is newer than what was read. */
static void is_not_bound(struct bind *bind, const char *version)
{
	if (bind->hold)
		hold_set_version(bind->hold, version);
	if (bind->may_come && !strcmp(version, bind->version))
		renew(bind);
	else if (bind->may_come || bind->is_unknown || ++bind->tries > TRIES_MOST)
		fail(bind, "the binding was not carried out");
	else if (bind->hold)
		turn_again(bind->turn);
	else
		send_binding(bind, version);
}

static void was_confirmed(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	if (result->outcome == KUBE_E_NOT_FOUND)
		fail(bind, result->words);
	else if (result->outcome)
		leave_unknown(bind, result->words);
	else if (!is_pod_of(bind, result->body))
		fail(bind, "there is another pod of that name");
	else if (!*object_node(result->body))
		is_not_bound(bind, object_text(result->body, "resourceVersion"));
	else if (!strcmp(object_node(result->body), bind->node_name))
		succeed(bind);
	else
		fail(bind, "the pod is bound to another node");
}

/* It is told by who may be in the middle of something. */
static void hold_changed(void *context)
{
	struct bind *bind = context;

	loop_timer_set(bind->extender->loop, &bind->timer, clock_now_ns());
}

static const char *why_not_kept(const struct hold *hold)
{
	return hold->trouble ? hold->trouble : "the pod is gone, or its devices were given back";
}

/* The lock is the pod's. Nobody else may have put pods onto the node since it was promised. */
static void go_on(struct bind *bind)
{
	struct hold *hold = bind->hold;
	struct cluster_node *node = cluster_node(bind->extender->cluster, bind->node_name);
	const char *trouble = extender_trouble(bind->extender);

	if (!hold->is_kept)
		fail(bind, why_not_kept(hold));
	else if (trouble)
		fail(bind, trouble);
	else if (!hold->is_own)
		fail(bind, "another scheduler has promised the devices");
	else if (!node || node->others != hold->others)
		fail(bind, "another scheduler has bound pods to the node");
	else if (!hold->version || !*hold->version)
		confirm(bind);
	else
		send_binding(bind, hold->version);
}

static void has_turn(void *context, const char *why)
{
	struct bind *bind = context;

	if (why)
		fail(bind, why);
	else
		go_on(bind);
}

static void take_turn(struct bind *bind)
{
	struct extender *extender = bind->extender;
	struct cluster_node *node = cluster_node(extender->cluster, bind->node_name);
	const struct turn_request request = {extender->client, extender->cluster,
		extender->settings, node, bind->namespace, bind->name};

	if (!bind->hold->is_kept)
		fail(bind, why_not_kept(bind->hold));
	else if (!node || !node->is_present)
		fail(bind, "the node is gone");
	else if (turn_begin(&request, has_turn, bind, &bind->turn))
		fail(bind, "no memory");
}

static void due(void *context)
{
	struct bind *bind = context;

	if (bind->is_unknown)
		confirm(bind);
	else
		take_turn(bind);
}

void extender_lock_changed(struct extender *extender, struct cluster_node *node)
{
	turn_lock_changed(node);
}

bool extender_abort_bind(struct bind *bind, const char *why)
{
	if (!bind->turn || !turn_is_waiting(bind->turn))
		return false;
	fail(bind, why);
	return true;
}

/* The pod is kept nothing: it has no devices, was bound already, or must be scheduled anew. */
static void was_identified(void *context, const struct kube_result *result)
{
	struct bind *bind = context;
	const struct demand_rules *rules = &bind->extender->settings->rules.demand;
	struct demand demand = {0};

	bind->call = NULL;
	if (result->outcome)
		fail(bind, result->words);
	else if (!is_pod_of(bind, result->body))
		fail(bind, "there is another pod of that name");
	else if (*object_node(result->body))
		strcmp(object_node(result->body), bind->node_name)
			? fail(bind, "the pod is bound to another node")
			: succeed(bind);
	else if (demand_read_containers(rules, result->body, &demand))
		fail(bind, "no memory");
	else if (demand.asks)
		fail(bind, "no devices of the node are kept for the pod");
	else
		send_binding(bind, object_text(result->body, "resourceVersion"));
	demand_deinit(&demand);
}

static size_t count_waiting(const struct extender *extender)
{
	size_t count = 0;

	for (const struct bind *bind = extender->binds; bind; bind = bind->next)
		count += bind->http != NULL;
	return count;
}

/* What was promised a pod is bound on its node. */
static void begin_with(struct bind *bind, struct hold *hold)
{
	if (strcmp(hold->name, bind->name) != 0 || strcmp(hold->namespace, bind->namespace) != 0) {
		fail(bind, "the pod of that uid has another name");
	} else if (hold->bind) {
		fail(bind, "the pod is being bound");
	} else if (strcmp(hold_node(hold), bind->node_name) != 0) {
		fail(bind, "the pod's devices are kept on another node");
	} else {
		bind->hold = hold;
		hold->bind = bind;
		hold->context = bind;
		if (count_waiting(bind->extender) > WAITING_MOST)
			fail(bind, "too many pods wait to be bound");
		else if (holds_is_writing(cluster_holds(bind->extender->cluster), hold))
			hold->changed = hold_changed;
		else
			take_turn(bind);
	}
}

static void begin(struct bind *bind)
{
	struct hold *hold = holds_find(cluster_holds(bind->extender->cluster), bind->uid);

	if (hold && hold->is_kept)
		begin_with(bind, hold);
	else if (hold && hold->trouble)
		fail(bind, hold->trouble);
	else if (read_pod(bind, was_identified))
		fail(bind, "no memory");
}

static char *copy_text(const json_t *arguments, const char *key)
{
	const char *text = json_string_value(json_object_get(arguments, key));

	return strdup(text ? text : "");
}

static struct bind *new_bind(
	struct extender *extender, struct http_call *call, const json_t *arguments)
{
	struct bind *bind = calloc(1, sizeof(*bind));

	if (!bind)
		return NULL;
	bind->extender = extender;
	bind->http = call;
	bind->timer = (struct loop_timer){.due = due, .context = bind};
	bind->namespace = copy_text(arguments, "PodNamespace");
	bind->name = copy_text(arguments, "PodName");
	bind->uid = copy_text(arguments, "PodUID");
	bind->node_name = copy_text(arguments, "Node");
	bind->began_ns = clock_now_ns();
	bind->link = &extender->binds;
	bind->next = extender->binds;
	if (bind->next)
		bind->next->link = &bind->next;
	extender->binds = bind;
	if (bind->namespace && bind->name && bind->uid && bind->node_name)
		return bind;
	free_bind(bind, true);
	return NULL;
}

void extender_bind(struct extender *extender, struct http_call *call)
{
	uint64_t began_ns = clock_now_ns();
	struct err err = ERR_NULL;
	json_t *arguments = extender_read(call, &err);
	const char *trouble = arguments ? extender_trouble(extender) : err.text;
	struct bind *bind;

	if (trouble) {
		json_decref(arguments);
		answer(extender, call, began_ns, trouble);
		return;
	}
	bind = new_bind(extender, call, arguments);
	json_decref(arguments);
	if (!bind) {
		answer(extender, call, began_ns, "no memory");
	} else if (!object_is_name(bind->name) || !object_is_name(bind->namespace) ||
		   !object_is_name(bind->node_name)) {
		free_bind(bind, true);
		answer(extender, call, began_ns, "the arguments name no pod and no node");
	} else {
		http_call_set_data(call, &bind->http);
		begin(bind);
	}
}

size_t extender_bind_count(const struct extender *extender)
{
	size_t count = 0;

	for (const struct bind *bind = extender->binds; bind; bind = bind->next)
		count++;
	return count;
}

void extender_stop_binds(struct extender *extender)
{
	while (extender->binds)
		free_bind(extender->binds, false);
	if (extender->cluster)
		cluster_each_node(extender->cluster, turn_stop);
}
