/* SPDX-License-Identifier: Apache-2.0 */
/* A bind's turn at a node. */
#include "scheduler/turn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/bind_calls.h"
#include "scheduler/demand.h"
#include "scheduler/object.h"

#define LOG_TOPIC   LOG_PODS
#define SECOND_NS   1000000000ull
#define LOOK_NS	    SECOND_NS /* between two looks at who has a lock */
#define UNLOCK_MOST 8	      /* tries on a node that others change at the same time */

/* From a lock to the binding; others take over the lock of a pod that is not bound after twice that time. */
#define BINDING_NS (NODELOCK_BINDING_S * SECOND_NS / 2)

enum step {
	STEP_WAIT,   /* for its place, or for the lock to go */
	STEP_HOLDER, /* reads the pod that has the lock */
	STEP_RENEW,  /* gives that pod another version */
	STEP_REREAD, /* reads the node */
	STEP_LOCK,
	STEP_VERIFY, /* reads the pods of the node */
	STEP_DONE,
	STEP_UNLOCK, /* nobody waits for it but the next turn */
};

struct turn {
	struct kube_client *client;
	struct cluster *cluster;
	const struct settings *settings;
	struct cluster_node *node;
	struct kube_call *call;
	struct loop_timer timer;
	char *namespace, *name;
	char lock[NODELOCK_BYTES];   /* that it has set, or may have; "": none */
	char judged[NODELOCK_BYTES]; /* the lock whose pod is looked at */
	enum step step;
	unsigned tries;
	uint64_t deadline_ns, sent_ns;
	void (*done)(void *context, const char *why);
	void *context;
	struct turn *next, **link; /* of the node */
};

static void step(struct turn *turn);

static struct loop *loop_of(const struct turn *turn)
{
	return kube_client_loop(turn->client);
}

static void wake(struct turn *turn, uint64_t at_ns)
{
	loop_timer_set(loop_of(turn), &turn->timer, at_ns);
}

/* The next of the node is the first now. */
static void free_turn(struct turn *turn)
{
	struct cluster_node *node = turn->node;

	kube_cancel(turn->call);
	loop_timer_clear(loop_of(turn), &turn->timer);
	*turn->link = turn->next;
	if (turn->next)
		turn->next->link = turn->link;
	if (!node->turns)
		cluster_release_node(turn->cluster, node);
	else if (node->turns->step == STEP_WAIT)
		wake(node->turns, clock_now_ns());
	free(turn->namespace);
	free(turn->name);
	free(turn);
}

static void finish(struct turn *turn, const char *why)
{
	turn->step = STEP_DONE;
	turn->done(turn->context, why);
}

static void pods_came(void *context, const struct kube_result *result)
{
	struct turn *turn = context;

	turn->call = NULL;
	if (result->outcome) {
		finish(turn, result->words);
	} else if (strcmp(turn->node->lock, turn->lock) != 0) {
		finish(turn, "another scheduler has taken the node's lock");
	} else if (cluster_knows_pods(turn->cluster, result->body)) {
		turn->node->is_verified = true;
		finish(turn, NULL);
	} else {
		finish(turn, "another scheduler has bound pods to the node");
	}
}

static void verify(struct turn *turn)
{
	turn->step = STEP_VERIFY;
	if (bind_calls_read_pods(turn->client, turn->node->name, pods_came, turn, &turn->call))
		finish(turn, "no memory");
}

static void was_reread(void *context, const struct kube_result *result)
{
	struct turn *turn = context;

	turn->call = NULL;
	turn->step = STEP_WAIT;
	if (!result->outcome)
		cluster_take_node(turn->cluster, result->body);
	if (result->outcome && result->outcome != KUBE_E_UNREACHABLE)
		finish(turn, result->words);
	else
		step(turn);
}

/* The node has changed meanwhile, and who has done so is not known. */
static void reread(struct turn *turn)
{
	turn->node->is_verified = false;
	turn->step = STEP_REREAD;
	if (bind_calls_read_node(turn->client, turn->node->name, was_reread, turn, &turn->call))
		finish(turn, "no memory");
}

static void was_locked(void *context, const struct kube_result *result)
{
	struct turn *turn = context;

	turn->call = NULL;
	if (!result->outcome)
		cluster_take_node(turn->cluster, result->body);
	if (result->outcome == KUBE_E_CONFLICT) {
		turn->lock[0] = '\0';
		reread(turn);
	} else if (result->outcome) {
		finish(turn, result->words);
	} else if (clock_now_ns() - turn->sent_ns > BINDING_NS) {
		finish(turn, "the node's lock took too long");
	} else if (!turn->node->is_verified) {
		verify(turn);
	} else {
		finish(turn, NULL);
	}
}

/*
 * Also a lock of this pod that is there already is another one then: who has set it, and is about to remove it, does not find it
 * any more.
 */
static void set_lock(struct turn *turn)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	nodelock_format(&now, turn->namespace, turn->name, turn->lock);
	strcpy(turn->node->own_lock, turn->lock);
	turn->step = STEP_LOCK;
	turn->sent_ns = clock_now_ns();
	if (bind_calls_lock(turn->client, turn->node->name, turn->node->version, turn->lock,
		    was_locked, turn, &turn->call)) {
		turn->lock[0] = '\0';
		finish(turn, "no memory");
	}
}

static void say_contention(struct turn *turn)
{
	char words[400];

	snprintf(words, sizeof(words),
		"node %.253s has been locked within %llum%llus: node lock contention",
		turn->node->name, (unsigned long long)(turn->settings->lock_ns / (60 * SECOND_NS)),
		(unsigned long long)(turn->settings->lock_ns / SECOND_NS % 60));
	finish(turn, words);
}

static void was_renewed(void *context, const struct kube_result *result)
{
	struct turn *turn = context;
	bool is_same = turn->node->is_present && !strcmp(turn->node->lock, turn->judged);

	turn->call = NULL;
	turn->step = STEP_WAIT;
	if (result->outcome && result->outcome != KUBE_E_NOT_FOUND &&
		result->outcome != KUBE_E_CONFLICT)
		finish(turn, result->words);
	else if (is_same && result->outcome != KUBE_E_CONFLICT)
		set_lock(turn);
	else
		step(turn);
}

/*
 * Who has set the lock of a pod that is not bound may have sent a binding that the server is about to carry out. It names the
 * version that the pod had when the lock was set, and finds another.
 */
static void take_over(struct turn *turn, const struct nodelock *lock, const json_t *pod)
{
	const struct bind_target owner = {.namespace = lock->namespace,
		.name = lock->name,
		.version = object_text(pod, "resourceVersion")};

	log_info("a node's lock is taken over", STR("node", turn->node->name),
		STR("lock", turn->node->lock));
	if (!pod || object_is_over(pod) || *object_node(pod)) {
		set_lock(turn);
		return;
	}
	turn->step = STEP_RENEW;
	if (bind_calls_renew_pod(turn->client, &owner, was_renewed, turn, &turn->call))
		finish(turn, "no memory");
}

/* The lock is another pod's. */
static void judge(struct turn *turn, const struct nodelock *lock, const json_t *pod)
{
	int64_t seen_s = (int64_t)((clock_now_ns() - turn->node->lock_seen_ns) / SECOND_NS);
	/* a clock that is set while the lock is there makes it no older */
	enum nodelock_verdict verdict =
		nodelock_judge(lock, turn->node->name, pod, turn->node->lock_seen_s + seen_s,
			seen_s, (int64_t)(turn->settings->lock_ns / SECOND_NS));

	if (verdict == NODELOCK_LEFT) {
		take_over(turn, lock, pod);
	} else if (clock_now_ns() >= turn->deadline_ns) {
		say_contention(turn);
	} else {
		turn->step = STEP_WAIT;
		wake(turn, clock_now_ns() + LOOK_NS);
	}
}

static void holder_came(void *context, const struct kube_result *result)
{
	struct turn *turn = context;
	struct nodelock lock;

	turn->call = NULL;
	turn->step = STEP_WAIT;
	if (!turn->node->is_present || strcmp(turn->node->lock, turn->judged) != 0 ||
		!nodelock_parse(turn->node->lock, &lock))
		step(turn);
	else if (result->outcome && result->outcome != KUBE_E_NOT_FOUND)
		finish(turn, result->words);
	else if (!nodelock_is_of(&lock, turn->namespace, turn->name))
		judge(turn, &lock, result->body);
	else if (*object_node(result->body))
		finish(turn, "another scheduler has bound the pod");
	else
		take_over(turn, &lock, result->body);
}

static void read_holder(struct turn *turn, const struct nodelock *lock)
{
	turn->step = STEP_HOLDER;
	strcpy(turn->judged, turn->node->lock);
	if (bind_calls_read_pod(
		    turn->client, lock->namespace, lock->name, holder_came, turn, &turn->call))
		finish(turn, "no memory");
}

/* A lock that was set just now is that of a pod whose devices are being handed out. */
static void look_at_lock(struct turn *turn, const struct nodelock *lock)
{
	uint64_t now = clock_now_ns();

	if (!*lock->name || !object_is_name(lock->namespace) || !object_is_name(lock->name)) {
		judge(turn, &(struct nodelock){.set_s = lock->set_s}, NULL);
	} else if (now < turn->node->lock_seen_ns + LOOK_NS && now < turn->deadline_ns &&
		   lock->set_s + 1 >= turn->node->lock_seen_s) {
		wake(turn, now + LOOK_NS);
	} else {
		read_holder(turn, lock);
	}
}

/* The first of the node goes on as far as it can without an answer. */
static void step(struct turn *turn)
{
	struct nodelock lock;

	if (turn->step != STEP_WAIT)
		return;
	if (!turn->node->is_present) {
		finish(turn, "the node is gone");
	} else if (turn->node->turns != turn && clock_now_ns() >= turn->deadline_ns) {
		say_contention(turn);
	} else if (turn->node->turns != turn) {
		wake(turn, turn->deadline_ns);
	} else if (!turn->node->version) {
		reread(turn);
	} else if (!nodelock_parse(turn->node->lock, &lock)) {
		set_lock(turn);
	} else if (!nodelock_is_of(&lock, turn->namespace, turn->name)) {
		look_at_lock(turn, &lock);
	} else if (!strcmp(turn->node->lock, turn->node->own_lock)) {
		set_lock(turn);
	} else {
		read_holder(turn, &lock);
	}
}

static void due(void *context)
{
	step(context);
}

void turn_lock_changed(struct cluster_node *node)
{
	/* from the loop: who tells this may be in the middle of something */
	for (struct turn *turn = node->turns; turn; turn = turn->next) {
		if (turn->step == STEP_WAIT)
			wake(turn, clock_now_ns());
		if (node->is_present)
			break;
	}
}

int turn_begin(const struct turn_request *request, void (*done)(void *context, const char *why),
	void *context, struct turn **ret_turn)
{
	struct turn *turn = calloc(1, sizeof(*turn)), **last = &request->node->turns;

	if (!turn)
		return -ENOMEM;
	while (*last)
		last = &(*last)->next;
	*turn = (struct turn){.client = request->client,
		.cluster = request->cluster,
		.settings = request->settings,
		.node = request->node,
		.namespace = strdup(request->namespace),
		.name = strdup(request->name),
		.deadline_ns = clock_now_ns() + request->settings->bind_wait_ns,
		.done = done,
		.context = context,
		.link = last};
	turn->timer = (struct loop_timer){.due = due, .context = turn};
	*last = turn;
	if (!turn->namespace || !turn->name) {
		free_turn(turn);
		return -ENOMEM;
	}
	wake(turn, clock_now_ns());
	*ret_turn = turn;
	return 0;
}

void turn_again(struct turn *turn)
{
	turn->step = STEP_WAIT;
	wake(turn, clock_now_ns());
}

bool turn_is_waiting(const struct turn *turn)
{
	return turn->step == STEP_WAIT || turn->step == STEP_HOLDER || turn->step == STEP_RENEW ||
	       turn->step == STEP_REREAD;
}

static void find_lock(struct turn *turn);

static void was_unlocked(void *context, const struct kube_result *result)
{
	struct turn *turn = context;

	turn->call = NULL;
	if (!result->outcome)
		cluster_take_node(turn->cluster, result->body);
	if (result->outcome == KUBE_E_CONFLICT && ++turn->tries < UNLOCK_MOST) {
		find_lock(turn);
		return;
	}
	if (result->outcome && result->outcome != KUBE_E_NOT_FOUND)
		log_warn("a node's lock could not be removed; it holds until it is too old",
			STR("node", turn->node->name), STR("why", result->words));
	free_turn(turn);
}

/* Only where the node is as it was seen: what the server carries out late finds another version, and does nothing. */
static void unlock(struct turn *turn, const char *version)
{
	if (bind_calls_unlock(
		    turn->client, turn->node->name, version, was_unlocked, turn, &turn->call))
		was_unlocked(turn,
			&(struct kube_result){.outcome = KUBE_E_UNREACHABLE, .words = "no memory"});
}

static void lock_came(void *context, const struct kube_result *result)
{
	struct turn *turn = context;
	const char *lock = demand_annotation(result->body, NODELOCK_ANNOTATION);

	turn->call = NULL;
	if (!result->outcome && lock && !strcmp(lock, turn->lock))
		unlock(turn, object_text(result->body, "resourceVersion"));
	else if (result->outcome)
		was_unlocked(turn, result);
	else
		free_turn(turn);
}

/* The lock's answer was lost, or the node has changed since. */
static void find_lock(struct turn *turn)
{
	turn->node->is_verified = false;
	if (bind_calls_read_node(turn->client, turn->node->name, lock_came, turn, &turn->call))
		was_unlocked(turn,
			&(struct kube_result){.outcome = KUBE_E_UNREACHABLE, .words = "no memory"});
}

void turn_end(struct turn *turn, bool unlocks)
{
	if (!turn)
		return;
	if (!unlocks || !*turn->lock || turn->call) {
		free_turn(turn);
		return;
	}
	turn->step = STEP_UNLOCK;
	if (turn->node->version && !strcmp(turn->node->lock, turn->lock))
		unlock(turn, turn->node->version);
	else
		find_lock(turn);
}

void turn_stop(struct cluster_node *node)
{
	for (struct turn *turn = node->turns, *next; turn; turn = next) {
		next = turn->next;
		if (turn->step == STEP_UNLOCK)
			free_turn(turn);
	}
}
