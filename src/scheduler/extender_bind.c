/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /bind: the node's lock, then the binding.
 *
 * Binds of one node wait here for its lock, one behind the other and for a bounded time, instead of failing: a bind that
 * fails costs another Filter. The lock is set only where the node is still as it was last seen; the phase and the time
 * of the binding come with the binding itself, so that a pod has them exactly if it is bound. A bind that fails takes back
 * the lock, the promise, and the pod's annotations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/bind_calls.h"
#include "scheduler/extender.h"

#define LOG_TOPIC   LOG_PODS
#define SECOND_NS   1000000000ull
#define LOOK_NS	    SECOND_NS /* between two looks at who has a lock */

#define NOT_LEADING "this replica does not lead any more"

enum step {
	STEP_IDENTIFY, /* reads a pod for which nothing is kept */
	STEP_WAIT,     /* for its turn, or for the lock to go */
	STEP_HOLDER,   /* reads the pod that has the lock */
	STEP_REREAD,   /* reads the node */
	STEP_LOCK,
	STEP_BIND,
	STEP_CONFIRM, /* reads the pod, because the answer to the binding was lost */
	STEP_UNLOCK,  /* has failed, and takes its lock back */
};

struct bind {
	struct extender *extender;
	struct http_call *http; /* NULL: it is not to be answered any more */
	struct kube_call *call;
	struct loop_timer timer;
	struct hold *hold; /* NULL: the pod has no devices */
	struct cluster_node *node;
	char *namespace, *name, *uid, *node_name;
	char lock[NODELOCK_BYTES]; /* that it has set; "": none */
	char why[600];		   /* it has failed */
	enum step step;
	uint64_t began_ns, deadline_ns;
	struct bind *next, **link; /* of all */
	struct bind *next_of,
		**link_of; /* of the node; link_of is NULL where it is not among them */
};

static void step(struct bind *bind);

static void leave_queue(struct bind *bind)
{
	struct cluster_node *node = bind->node;
	struct bind *next;

	if (!bind->link_of)
		return;
	*bind->link_of = bind->next_of;
	if (bind->next_of)
		bind->next_of->link_of = bind->link_of;
	bind->link_of = NULL;
	bind->node = NULL;
	next = node->binds;
	if (!next)
		cluster_release_node(bind->extender->cluster, node);
	else if (next->step == STEP_WAIT)
		loop_timer_set(bind->extender->loop, &next->timer, clock_now_ns());
}

static void free_bind(struct bind *bind)
{
	kube_cancel(bind->call);
	loop_timer_clear(bind->extender->loop, &bind->timer);
	leave_queue(bind);
	if (bind->link) {
		*bind->link = bind->next;
		if (bind->next)
			bind->next->link = bind->link;
	}
	if (bind->hold)
		bind->hold->bind = NULL;
	free(bind->namespace);
	free(bind->name);
	free(bind->uid);
	free(bind->node_name);
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

/* Gives back what is kept. A replica that leads no more has nothing to say about promises. */
static void end_failed(struct bind *bind)
{
	struct extender *extender = bind->extender;
	struct http_call *http = bind->http;
	struct hold *hold = bind->hold;
	uint64_t began_ns = bind->began_ns;
	char words[sizeof(bind->why)];

	memcpy(words, bind->why, sizeof(words));
	tell(bind, "BindingFailed", words, true);
	free_bind(bind);
	if (hold && hold->is_kept)
		holds_end(cluster_holds(extender->cluster), hold, extender->leads);
	answer(extender, http, began_ns, words);
}

static void was_unlocked(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	if (!result->outcome)
		cluster_take_node(bind->extender->cluster, result->body);
	else if (result->outcome != KUBE_E_INVALID && result->outcome != KUBE_E_NOT_FOUND)
		log_warn("a node's lock could not be removed; it holds until it is too old",
			STR("why", result->words));
	end_failed(bind);
}

/*
 * Gives everything back, the lock first: until that is known, the node looks as if the pod still had it. The lock of a replica that
 * leads no more stays: the pod's next bind, by another, may go by it.
 */
static void fail(struct bind *bind, const char *why)
{
	bool has_lock = *bind->lock && bind->extender->leads;

	snprintf(bind->why, sizeof(bind->why), "%s", why);
	bind->step = STEP_UNLOCK;
	if (has_lock && !bind_calls_unlock(bind->extender->client, bind->node_name, bind->lock,
				was_unlocked, bind, &bind->call))
		return;
	if (has_lock)
		log_warn("no memory to remove a node's lock");
	end_failed(bind);
}

static void succeed(struct bind *bind)
{
	struct extender *extender = bind->extender;
	struct http_call *http = bind->http;
	struct hold *hold = bind->hold;
	uint64_t began_ns = bind->began_ns;
	char words[600];

	snprintf(words, sizeof(words), "Successfully binding node [%.250s] to %.63s/%.253s",
		bind->node_name, bind->namespace, bind->name);
	tell(bind, "BindingSucceed", words, false);
	free_bind(bind);
	/* what it takes stays in the books, and from now on is what the pod's object says */
	if (hold)
		holds_forget(cluster_holds(extender->cluster), hold);
	answer(extender, http, began_ns, "");
}

static void wait_again(struct bind *bind, uint64_t pause_ns)
{
	bind->step = STEP_WAIT;
	loop_timer_set(bind->extender->loop, &bind->timer, clock_now_ns() + pause_ns);
}

static int call_pod(struct bind *bind, const char *namespace, const char *name, enum step next,
	kube_done_fn *done)
{
	bind->step = next;
	bind->extender->measure->calls++;
	return bind_calls_read_pod(
		bind->extender->client, namespace, name, done, bind, &bind->call);
}

static const char *node_of(const json_t *pod)
{
	const char *node =
		json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));

	return node ? node : "";
}

static bool is_pod_of(const struct bind *bind, const json_t *pod)
{
	const char *uid =
		json_string_value(json_object_get(json_object_get(pod, "metadata"), "uid"));

	return uid && (!*bind->uid || !strcmp(uid, bind->uid));
}

/*
 * Nobody knows whether it is bound. Lock, promise and annotations stay, because a pod that is bound needs them, and it is asked
 * until it is known; so long the pod is not promised anything else.
 */
static void leave_unknown(struct bind *bind, const char *why)
{
	struct http_call *http = bind->http;
	char words[600];

	snprintf(words, sizeof(words), "it is not known whether the pod is bound: %.500s", why);
	leave_queue(bind);
	loop_timer_set(bind->extender->loop, &bind->timer, clock_now_ns() + LOOK_NS);
	bind->http = NULL;
	if (!http)
		return;
	tell(bind, "BindingFailed", words, true);
	answer(bind->extender, http, bind->began_ns, words);
}

static void was_confirmed(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	if (result->outcome == KUBE_E_NOT_FOUND)
		fail(bind, result->words);
	else if (result->outcome)
		leave_unknown(bind, result->words);
	else if (is_pod_of(bind, result->body) && !strcmp(node_of(result->body), bind->node_name))
		succeed(bind);
	else
		fail(bind, "the binding was not carried out");
}

static void was_bound(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	if (!result->outcome)
		succeed(bind);
	else if (result->outcome == KUBE_E_UNCERTAIN || result->outcome == KUBE_E_EXISTS ||
		 result->outcome == KUBE_E_CONFLICT) {
		if (call_pod(bind, bind->namespace, bind->name, STEP_CONFIRM, was_confirmed))
			fail(bind, "no memory");
	} else {
		fail(bind, result->words);
	}
}

static void send_binding(struct bind *bind)
{
	const struct bind_target target = {bind->namespace, bind->name, bind->uid, bind->node_name,
		bind->hold ? bind->hold->annotations : NULL};

	if (!bind->extender->leads) {
		fail(bind, NOT_LEADING);
		return;
	}
	bind->step = STEP_BIND;
	bind->extender->measure->calls++;
	if (bind_calls_bind(bind->extender->client, &target, was_bound, bind, &bind->call))
		fail(bind, "no memory");
}

static void was_reread(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	bind->step = STEP_WAIT;
	if (!result->outcome)
		cluster_take_node(bind->extender->cluster, result->body);
	if (result->outcome && result->outcome != KUBE_E_UNREACHABLE)
		fail(bind, result->words);
	else
		step(bind);
}

/* The node has changed meanwhile. */
static void reread(struct bind *bind)
{
	bind->step = STEP_REREAD;
	bind->extender->measure->calls++;
	if (bind_calls_read_node(
		    bind->extender->client, bind->node_name, was_reread, bind, &bind->call))
		fail(bind, "no memory");
}

static void was_locked(void *context, const struct kube_result *result)
{
	struct bind *bind = context;

	bind->call = NULL;
	if (!result->outcome) {
		cluster_take_node(bind->extender->cluster, result->body);
		send_binding(bind);
	} else if (result->outcome == KUBE_E_CONFLICT) {
		bind->lock[0] = '\0';
		reread(bind);
	} else {
		/* a lost answer may have set it: the lock is removed where it is this one */
		fail(bind, result->words);
	}
}

static void set_lock(struct bind *bind)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	nodelock_format(&now, bind->namespace, bind->name, bind->lock);
	bind->step = STEP_LOCK;
	bind->extender->measure->calls++;
	if (bind_calls_lock(bind->extender->client, bind->node_name, bind->node->version,
		    bind->lock, was_locked, bind, &bind->call)) {
		bind->lock[0] = '\0';
		fail(bind, "no memory");
	}
}

static void say_contention(struct bind *bind)
{
	char words[400];

	snprintf(words, sizeof(words),
		"node %.253s has been locked within %llum%llus: node lock contention",
		bind->node_name,
		(unsigned long long)(bind->extender->settings->lock_ns / (60 * SECOND_NS)),
		(unsigned long long)(bind->extender->settings->lock_ns / SECOND_NS % 60));
	fail(bind, words);
}

/* The lock is somebody else's. */
static void judge(struct bind *bind, const struct nodelock *lock, const json_t *pod)
{
	int64_t seen_s = (int64_t)((clock_now_ns() - bind->node->lock_seen_ns) / SECOND_NS);
	enum nodelock_verdict verdict = nodelock_judge(lock, bind->node_name, pod, time(NULL),
		seen_s, (int64_t)(bind->extender->settings->lock_ns / SECOND_NS));

	if (verdict == NODELOCK_LEFT) {
		log_info("a node's lock is taken over", STR("node", bind->node_name),
			STR("lock", bind->node->lock));
		set_lock(bind);
	} else if (clock_now_ns() >= bind->deadline_ns) {
		say_contention(bind);
	} else {
		wait_again(bind, LOOK_NS);
	}
}

static void holder_came(void *context, const struct kube_result *result)
{
	struct bind *bind = context;
	struct nodelock lock;

	bind->call = NULL;
	bind->step = STEP_WAIT;
	if (!bind->node->is_present || !nodelock_parse(bind->node->lock, &lock))
		step(bind);
	else if (result->outcome && result->outcome != KUBE_E_NOT_FOUND)
		fail(bind, result->words);
	else
		judge(bind, &lock, result->body);
}

/* A lock that was set just now is that of a pod whose devices are being handed out. */
static void look_at_lock(struct bind *bind, const struct nodelock *lock)
{
	uint64_t now = clock_now_ns();

	if (!*lock->name || !extender_is_name(lock->namespace) || !extender_is_name(lock->name)) {
		judge(bind, &(struct nodelock){.set_s = lock->set_s}, NULL);
	} else if (now < bind->node->lock_seen_ns + LOOK_NS && now < bind->deadline_ns &&
		   lock->set_s + 1 >= time(NULL)) {
		wait_again(bind, LOOK_NS);
	} else if (call_pod(bind, lock->namespace, lock->name, STEP_HOLDER, holder_came)) {
		fail(bind, "no memory");
	}
}

/* The first of the node's binds goes on as far as it can without an answer. */
static void step(struct bind *bind)
{
	struct nodelock lock;

	if (bind->step != STEP_WAIT)
		return;
	if (!bind->node->is_present)
		fail(bind, "the node is gone");
	else if (bind->hold && !bind->hold->is_kept)
		fail(bind, "the pod is gone, or its devices were given back");
	else if (!bind->extender->leads)
		fail(bind, NOT_LEADING);
	else if (bind->node->binds != bind && clock_now_ns() >= bind->deadline_ns)
		say_contention(bind);
	else if (bind->node->binds != bind)
		loop_timer_set(bind->extender->loop, &bind->timer, bind->deadline_ns);
	else if (!nodelock_parse(bind->node->lock, &lock))
		set_lock(bind);
	else if (nodelock_is_of(&lock, bind->namespace, bind->name)) {
		strcpy(bind->lock, bind->node->lock);
		send_binding(bind);
	} else
		look_at_lock(bind, &lock);
}

static void due(void *context)
{
	struct bind *bind = context;

	if (bind->step != STEP_CONFIRM)
		step(bind);
	else if (call_pod(bind, bind->namespace, bind->name, STEP_CONFIRM, was_confirmed))
		leave_unknown(bind, "no memory");
}

void extender_lock_changed(struct extender *extender, struct cluster_node *node)
{
	/* from the loop: who tells this may be in the middle of something */
	for (struct bind *bind = node->binds; bind; bind = bind->next_of) {
		if (bind->step == STEP_WAIT)
			loop_timer_set(extender->loop, &bind->timer, clock_now_ns());
		if (node->is_present)
			break;
	}
}

bool extender_abort_bind(struct extender *extender, struct bind *bind, const char *why)
{
	struct hold *hold = bind->hold;

	if (bind->step != STEP_WAIT && bind->step != STEP_HOLDER && bind->step != STEP_REREAD)
		return false;
	bind->hold = NULL; /* what is kept is the caller's to end */
	hold->bind = NULL;
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
	else if (*node_of(result->body))
		strcmp(node_of(result->body), bind->node_name)
			? fail(bind, "the pod is bound to another node")
			: succeed(bind);
	else if (demand_read_containers(rules, result->body, &demand))
		fail(bind, "no memory");
	else if (demand.asks)
		fail(bind, "no devices of the node are kept for the pod");
	else
		send_binding(bind);
	demand_deinit(&demand);
}

/* A pod with devices of this node joins the node's queue. */
static void begin(struct bind *bind)
{
	struct extender *extender = bind->extender;
	struct hold *hold = holds_find(cluster_holds(extender->cluster), bind->uid);
	struct bind **last;

	if (!hold || !hold->is_kept) {
		if (call_pod(bind, bind->namespace, bind->name, STEP_IDENTIFY, was_identified))
			fail(bind, "no memory");
		return;
	}
	if (strcmp(hold->name, bind->name) != 0 || strcmp(hold->namespace, bind->namespace) != 0) {
		fail(bind, "the pod of that uid has another name");
		return;
	}
	if (strcmp(hold_node(hold), bind->node_name) != 0 || hold->bind || hold->filter) {
		fail(bind, hold->bind	  ? "the pod is being bound"
			   : hold->filter ? "the pod is being filtered"
					  : "the pod's devices are kept on another node");
		return;
	}
	bind->node = cluster_node(extender->cluster, bind->node_name);
	if (!bind->node || !bind->node->is_present) {
		bind->node = NULL;
		bind->hold = hold;
		fail(bind, "the node is gone");
		return;
	}
	bind->hold = hold;
	hold->bind = bind;
	for (last = &bind->node->binds; *last; last = &(*last)->next_of)
		;
	*last = bind;
	bind->link_of = last;
	bind->step = STEP_WAIT;
	step(bind);
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
	bind->deadline_ns = bind->began_ns + extender->settings->bind_wait_ns;
	bind->link = &extender->binds;
	bind->next = extender->binds;
	if (bind->next)
		bind->next->link = &bind->next;
	extender->binds = bind;
	if (bind->namespace && bind->name && bind->uid && bind->node_name)
		return bind;
	free_bind(bind);
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
	} else if (!extender_is_name(bind->name) || !extender_is_name(bind->namespace) ||
		   !extender_is_name(bind->node_name)) {
		free_bind(bind);
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
		free_bind(extender->binds);
}
