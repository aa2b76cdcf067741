/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's requests for slices.
 *
 * The first request of the queue is under way. The kubelet is answered as soon as the slot is taken; the lock is released
 * after that, because the kubelet can do something meanwhile, and before the next request, because that needs the lock
 * to be another's.
 */
#include "plugin/allocate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "plugin/cluster/change.h"
#include "plugin/cluster/find.h"
#include "plugin/job.h"

#define LOG_TOPIC LOG_PODS

/* The kubelet admits no other pod while it waits. */
#define DEADLINE_NS (8ull * 1000000000)
#define PREFER_NS   (2ull * 1000000000) /* without an answer it chooses by itself */

/* What a container needs is on its way: it is asked for again, each time after twice as long. */
#define AGAIN_NS      (5ull * 1000000)
#define AGAIN_MOST_NS (250ull * 1000000)

#define SLOT_TRIES \
	3 /* of taking it, where the answer to an attempt was lost or the pod was changed meanwhile */

struct allocate {
	const struct cluster *cluster;
	const struct giver *giver;
	void (*done)(void *context);
	void *context;
	struct job *first, **last;
	struct find find;
	struct kube_call *call;
	struct loop_timer start, deadline, again;
	/* of the container request that is under way */
	struct change_pod pod;
	char *before, *slot, *rest;
	char *instances_before; /* NULL: it has none */
	struct given given;
	struct change_pod holder; /* who has the place and may be gone */
	bool is_last;
	unsigned tries;
	uint64_t again_ns;  /* 0: it has not waited */
	struct err waiting; /* for what */
	struct flush flush;
};

static void find_next(struct allocate *allocate);
static void take_slot(struct allocate *allocate);

static void forget_container(struct allocate *allocate)
{
	flush_deinit(&allocate->flush);
	change_pod_deinit(&allocate->pod);
	free(allocate->before);
	free(allocate->slot);
	free(allocate->rest);
	free(allocate->given.message);
	free(allocate->given.instances);
	free(allocate->instances_before);
	change_pod_deinit(&allocate->holder);
	allocate->instances_before = NULL;
	allocate->before = allocate->slot = allocate->rest = NULL;
	allocate->given = (struct given){.message = NULL};
	allocate->tries = 0;
	allocate->again_ns = 0;
}

/* The first of the queue is over; the next one begins, not from here. */
static void job_end(struct allocate *allocate)
{
	struct job *job = allocate->first;

	kube_cancel(allocate->call);
	allocate->call = NULL;
	find_cancel(&allocate->find);
	loop_timer_clear(allocate->cluster->loop, &allocate->deadline);
	loop_timer_clear(allocate->cluster->loop, &allocate->again);
	forget_container(allocate);
	allocate->first = job->next;
	if (!allocate->first)
		allocate->last = &allocate->first;
	job_free(job);
	if (allocate->first)
		loop_timer_set(allocate->cluster->loop, &allocate->start, clock_now_ns());
	else
		allocate->done(allocate->context);
}

static void was_unlocked(void *context, const struct kube_result *result)
{
	struct allocate *allocate = context;

	allocate->call = NULL;
	if (!result->outcome)
		log_info("the node's lock is released",
			STR("node", node_name(allocate->cluster->node)));
	if (!result->outcome || result->outcome == KUBE_E_INVALID)
		node_forget_lock(allocate->cluster->node); /* not ours any more */
	else
		node_read_in(allocate->cluster->node, 1000000000ull);
	job_end(allocate);
}

/* What goes wrong here is made good by reconcile.h. */
static void unlock(struct allocate *allocate)
{
	const struct cluster *cluster = allocate->cluster;
	const struct node_lock *lock = &node_state(cluster->node)->lock;

	if (!lock->text[0] ||
		(lock->has_owner && !lock_is_of(lock, allocate->pod.space, allocate->pod.name)) ||
		change_unlock(
			cluster->client, cluster->node, was_unlocked, allocate, &allocate->call))
		job_end(allocate);
}

static void was_marked(void *context, const struct kube_result *result)
{
	struct allocate *allocate = context;

	allocate->call = NULL;
	if (!result->outcome)
		pods_renew(allocate->cluster->pods, result->body);
	unlock(allocate);
}

/* The pod is the scheduler's again: the kubelet gives up a pod whose slices are refused. */
static void fail(struct allocate *allocate, const char *words)
{
	const struct job *job = allocate->first;

	log_warn("Allocate failed", STR("namespace", allocate->pod.space),
		STR("pod", allocate->pod.name), STR("why", words),
		U64("ms", (clock_now_ns() - job->began_ns) / 1000000));
	job_refuse(allocate->first, words);
	loop_timer_clear(allocate->cluster->loop, &allocate->deadline);
	loop_timer_clear(allocate->cluster->loop, &allocate->again);
	if (!allocate->pod.uid)
		job_end(allocate);
	else if (change_to_failed(allocate->cluster->client, &allocate->pod, was_marked, allocate,
			 &allocate->call))
		unlock(allocate);
}

static void answer(struct allocate *allocate)
{
	job_answer(allocate->first);
	loop_timer_clear(allocate->cluster->loop, &allocate->deadline);
}

static void slot_is_taken(struct allocate *allocate)
{
	struct job *job = allocate->first;

	if (flush_wait(&allocate->flush)) {
		fail(allocate, "the container's files cannot be written to the disk");
		return;
	}
	if (job_append(job, allocate->given.message, allocate->given.bytes)) {
		fail(allocate, "no memory");
		return;
	}
	log_info("slices are handed out", STR("namespace", allocate->pod.space),
		STR("pod", allocate->pod.name), STR("devices", allocate->slot),
		U64("ms", (clock_now_ns() - job->began_ns) / 1000000));
	if (++job->at < job->request->n_container_requests) {
		forget_container(allocate);
		find_next(allocate);
		return;
	}
	answer(allocate);
	if (allocate->is_last)
		unlock(allocate);
	else
		job_end(allocate);
}

/* Whether the slot is taken after all, or can be taken still. */
static void pod_was_read(void *context, const struct kube_result *result)
{
	struct allocate *allocate = context;
	const struct pod *pod = NULL;

	allocate->call = NULL;
	if (!result->outcome) {
		pods_take(allocate->cluster->pods, result->body);
		pod = pods_find_uid(allocate->cluster->pods, allocate->pod.uid);
	}
	if (pod && pod->to_allocate && !strcmp(pod->to_allocate, allocate->rest))
		slot_is_taken(allocate);
	else if (pod && pod->to_allocate && !strcmp(pod->to_allocate, allocate->before) &&
		 allocate->tries < SLOT_TRIES)
		take_slot(allocate);
	else
		fail(allocate, result->outcome == KUBE_E_NOT_FOUND
				       ? "the pod is gone"
				       : "the pod's reservation was changed meanwhile");
}

static void slot_was_taken(void *context, const struct kube_result *result)
{
	struct allocate *allocate = context;

	allocate->call = NULL;
	if (!result->outcome) {
		pods_renew(allocate->cluster->pods, result->body);
		slot_is_taken(allocate);
	} else if (result->outcome == KUBE_E_NOT_FOUND) {
		fail(allocate, "the pod is gone");
	} else if ((result->outcome != KUBE_E_INVALID && result->outcome != KUBE_E_CONFLICT) ||
		   pods_read(allocate->cluster->client, allocate->pod.space, allocate->pod.name,
			   pod_was_read, allocate, &allocate->call)) {
		fail(allocate, result->words);
	}
}

static void take_slot(struct allocate *allocate)
{
	const struct change_text slots = {allocate->before, allocate->rest};
	const struct change_text instances = {
		allocate->instances_before, allocate->given.instances};

	allocate->tries++;
	if (change_slot(allocate->cluster->client, &allocate->pod, &slots,
		    allocate->given.instances ? &instances : NULL, allocate->is_last,
		    slot_was_taken, allocate, &allocate->call))
		fail(allocate, "no memory");
}

static void give_again(struct allocate *allocate, const struct err *why)
{
	uint64_t doubled_ns = allocate->again_ns * 2;

	allocate->waiting = *why;
	allocate->again_ns = !doubled_ns		  ? AGAIN_NS
			     : doubled_ns < AGAIN_MOST_NS ? doubled_ns
							  : AGAIN_MOST_NS;
	loop_timer_set(
		allocate->cluster->loop, &allocate->again, clock_now_ns() + allocate->again_ns);
}

static void give_slot(void *context);

static void holder_was_read(void *context, const struct kube_result *result)
{
	struct allocate *allocate = context;
	struct pods *pods = allocate->cluster->pods;
	const struct pod *holder;

	allocate->call = NULL;
	pods_take_read(pods, allocate->holder.space, allocate->holder.name, result);
	holder = pods_find_uid(pods, allocate->holder.uid);
	change_pod_deinit(&allocate->holder);
	if (holder && !holder->is_over)
		fail(allocate, allocate->waiting.text);
	else
		give_slot(allocate);
}

/*
 * The scheduler may have heard before us that a pod is gone, and the kubelet asks once. The server is asked about one pod after
 * another, and the first that is there ends it: so what tenants write on their pods costs one read.
 */
static void ask_for_holder(struct allocate *allocate, const struct err *why)
{
	const struct pod *holder = allocate->given.holder;

	allocate->waiting = *why;
	if (!holder)
		fail(allocate, why->text);
	else if (change_pod_of(holder, &allocate->holder) ||
		 pods_read(allocate->cluster->client, allocate->holder.space, allocate->holder.name,
			 holder_was_read, allocate, &allocate->call))
		fail(allocate, "no memory");
}

/* The slot's container gets what it is for, and only then the slot is taken. */
static void give_slot(void *context)
{
	struct allocate *allocate = context;
	const struct job *job = allocate->first;
	const V1beta1__ContainerAllocateRequest *request =
		job->request->container_requests[job->at];
	const struct pod *pod = pods_find_uid(allocate->cluster->pods, allocate->pod.uid);
	struct err err = ERR_NULL;
	struct give_request wanted = {
		.pods = pods_first(allocate->cluster->pods),
		.pod = pod,
		.container = pod ? pod_next_container(pod) : NULL,
		.slot = allocate->slot,
		.ids = request->devices_ids,
		.id_count = request->n_devices_ids,
		.flush = &allocate->flush,
	};
	int result;

	if (!wanted.container) {
		fail(allocate, "the pod is gone");
		return;
	}
	free(allocate->instances_before);
	allocate->instances_before = pod->instances ? strdup(pod->instances) : NULL;
	result = give(allocate->giver, &wanted, &allocate->given, &err);
	if (result == -EAGAIN) {
		give_again(allocate, &err);
	} else if (result == -EBUSY) {
		ask_for_holder(allocate, &err);
	} else if (result) {
		fail(allocate, err.text);
	} else {
		allocate->again_ns = 0;
		take_slot(allocate);
	}
}

static void serve(struct allocate *allocate, const struct pod *pod)
{
	allocate->before = strdup(pod->to_allocate);
	allocate->is_last = pod_slots_left(pod) == 1;
	if (!allocate->before || pod_take_slot(pod, &allocate->slot, &allocate->rest))
		fail(allocate, "no memory");
	else
		give_slot(allocate);
}

/* Of a pod that is not found nobody knows a slot. What is not in the answer the kubelet chooses by itself. */
static void answer_preferred(struct allocate *allocate, const struct pod *pod)
{
	struct job *job = allocate->first;
	const V1beta1__ContainerPreferredAllocationRequest *asked =
		job->preferred->container_requests[0];
	struct prefer_request request = {
		.free_ids = asked->available_deviceids,
		.free_count = asked->n_available_deviceids,
		.must_ids = asked->must_include_deviceids,
		.must_count = asked->n_must_include_deviceids,
		.wanted = (size_t)asked->allocation_size,
	};
	_cleanup_free_ const char **ids = calloc(request.wanted, sizeof(*ids));
	_cleanup_free_ char *slot = NULL;
	_cleanup_free_ char *rest = NULL;

	if (ids && (!pod || !pod_take_slot(pod, &slot, &rest)) &&
		!give_prefer(allocate->giver, slot, &request, ids) &&
		job_append_preferred(job, ids, request.wanted))
		log_debug("no memory for a preferred allocation");
	answer(allocate);
	job_end(allocate);
}

static void was_found(void *context, const struct find_result *result)
{
	struct allocate *allocate = context;

	if (allocate->first->preferred) {
		answer_preferred(allocate, result->choice == CHOICE_POD ? result->pod : NULL);
		return;
	}
	if (result->pod && change_pod_of(result->pod, &allocate->pod))
		fail(allocate, "no memory");
	else if (result->choice == CHOICE_POD)
		serve(allocate, result->pod);
	else
		fail(allocate, result->words);
}

static void find_next(struct allocate *allocate)
{
	find_begin(&allocate->find, job_slices(allocate->first));
}

/* A request that never reached the API server, or whose answer was lost: what it has done is found later. */
static void deadline_has_come(void *context)
{
	struct allocate *allocate = context;

	if (allocate->first->preferred) {
		answer_preferred(allocate, NULL);
		return;
	}
	if (allocate->again_ns) {
		fail(allocate, allocate->waiting.text);
		return;
	}
	log_warn("Allocate took too long", STR("namespace", allocate->pod.space),
		STR("pod", allocate->pod.name));
	job_refuse(allocate->first, "the API server did not answer in time");
	node_read_in(allocate->cluster->node, 1000000000ull);
	job_end(allocate);
}

static void job_start(void *context)
{
	struct allocate *allocate = context;
	struct job *job = allocate->first;

	job->began_ns = clock_now_ns();
	loop_timer_set(allocate->cluster->loop, &allocate->deadline,
		job->began_ns + (job->preferred ? PREFER_NS : DEADLINE_NS));
	if (job->call)
		find_next(allocate);
	else
		job_end(allocate);
}

static void enqueue(struct allocate *allocate, struct job *job)
{
	bool is_first = !allocate->first;

	*allocate->last = job;
	allocate->last = &job->next;
	if (is_first)
		loop_timer_set(allocate->cluster->loop, &allocate->start, clock_now_ns());
}

void allocate_take(
	struct allocate *allocate, struct rpc_call *call, const void *message, size_t bytes)
{
	struct job *job;

	if (job_new(call, false, message, bytes, &job))
		rpc_refuse(call, RPC_INVALID, "the request is not understood");
	else
		enqueue(allocate, job);
}

void allocate_prefer(
	struct allocate *allocate, struct rpc_call *call, const void *message, size_t bytes)
{
	struct job *job;

	if (job_new(call, true, message, bytes, &job))
		rpc_answer(call, "", 0);
	else
		enqueue(allocate, job);
}

/*
 * A kubelet that left asks again for a container whose answer it has not seen, so what is not done yet is better not done.
 */
void allocate_forget(struct allocate *allocate, const struct rpc_call *call)
{
	for (struct job *job = allocate->first; job; job = job->next)
		if (job->call && (!call || job->call == call))
			job->call = NULL;
	if (allocate->first && !allocate->first->call && allocate->find.is_searching)
		job_end(allocate);
}

void allocate_look_again(struct allocate *allocate)
{
	find_look_again(&allocate->find);
}

bool allocate_is_idle(const struct allocate *allocate)
{
	return !allocate->first;
}

int allocate_new(const struct cluster *cluster, const struct giver *giver,
	void (*done)(void *context), void *context, struct allocate **ret_allocate)
{
	struct allocate *allocate = calloc(1, sizeof(*allocate));

	if (!allocate)
		return -ENOMEM;
	allocate->cluster = cluster;
	allocate->giver = giver;
	allocate->done = done;
	allocate->context = context;
	allocate->last = &allocate->first;
	allocate->find.cluster = cluster;
	allocate->find.done = was_found;
	allocate->find.context = allocate;
	allocate->start = (struct loop_timer){.due = job_start, .context = allocate};
	allocate->again = (struct loop_timer){.due = give_slot, .context = allocate};
	allocate->deadline = (struct loop_timer){.due = deadline_has_come, .context = allocate};
	*ret_allocate = allocate;
	return 0;
}

void allocate_free(struct allocate *allocate)
{
	struct job *job;

	if (!allocate)
		return;
	kube_cancel(allocate->call);
	find_cancel(&allocate->find);
	loop_timer_clear(allocate->cluster->loop, &allocate->start);
	loop_timer_clear(allocate->cluster->loop, &allocate->deadline);
	loop_timer_clear(allocate->cluster->loop, &allocate->again);
	forget_container(allocate);
	while ((job = allocate->first)) {
		allocate->first = job->next;
		job_free(job);
	}
	free(allocate);
}
