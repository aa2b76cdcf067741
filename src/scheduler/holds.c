/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are kept for pods which are not bound yet. */
#include "scheduler/holds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/assignment.h"
#include "scheduler/hash.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

#define LOG_TOPIC LOG_PODS

/*
 * kube-scheduler binds some milliseconds after the answer, and in a rush of pods some hundred. The promise is written when nothing
 * was promised or bound for the first of these, and at the latest after the second.
 */
#define SECOND_NS 1000000000ull
#define QUIET_NS  50000000ull
#define LATE_NS	  2000000000ull

struct entry {
	struct hold hold; /* first */
	struct holds *holds;
	struct loop_timer write_timer;
	uint64_t kept_ns;
	bool is_lost;
	UT_hash_handle hh;
};

/* The annotations of a pod that are being taken off. */
struct clear {
	struct promise *promise;
	char *uid;
	struct clear *next, **link;
};

struct holds {
	struct kube_client *client;
	struct books *books;
	const struct demand_rules *rules;
	int64_t timeout_s;
	struct nudge *nudge;
	struct entry *entries;
	struct clear *clears;
	size_t kept_count;
	uint64_t busy_ns;  /* when something was promised or bound last */
	bool needs_labels; /* the server does not take them from bindings */
};

int holds_new(struct kube_client *client, struct books *books, const struct demand_rules *rules,
	int64_t timeout_s, struct nudge *nudge, struct holds **ret_holds)
{
	struct holds *holds = calloc(1, sizeof(*holds));

	if (!holds)
		return -ENOMEM;
	*holds = (struct holds){.client = client,
		.books = books,
		.rules = rules,
		.timeout_s = timeout_s,
		.nudge = nudge};
	*ret_holds = holds;
	return 0;
}

static void free_entry(struct entry *entry)
{
	promise_cancel(entry->hold.writing);
	loop_timer_clear(kube_client_loop(entry->holds->client), &entry->write_timer);
	json_decref(entry->hold.annotations);
	free(entry->hold.version);
	free(entry->hold.trouble);
	free(entry->hold.uid);
	free(entry->hold.namespace);
	free(entry->hold.name);
	free(entry);
}

static void free_clear(struct clear *clear)
{
	promise_cancel(clear->promise);
	*clear->link = clear->next;
	if (clear->next)
		clear->next->link = clear->link;
	free(clear->uid);
	free(clear);
}

void holds_free(struct holds *holds)
{
	struct entry *entry, *next;

	if (!holds)
		return;
	HASH_ITER(hh, holds->entries, entry, next)
	{
		HASH_DEL(holds->entries, entry);
		free_entry(entry);
	}
	while (holds->clears)
		free_clear(holds->clears);
	free(holds);
}

struct hold *holds_find(const struct holds *holds, const char *uid)
{
	struct entry *entry;

	HASH_FIND_STR(holds->entries, uid, entry);
	return entry ? &entry->hold : NULL;
}

const char *hold_node(const struct hold *hold)
{
	const char *node = json_string_value(json_object_get(hold->annotations, RESERVATION_NODE));

	return node ? node : "";
}

static struct clear *find_clear(const struct holds *holds, const char *uid)
{
	struct clear *clear = holds->clears;

	while (clear && strcmp(clear->uid, uid) != 0)
		clear = clear->next;
	return clear;
}

static void write_is_due(void *context);

static struct entry *add(struct holds *holds, const struct books_pod *from, const char *name)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->holds = holds;
	entry->write_timer = (struct loop_timer){.due = write_is_due, .context = entry};
	entry->hold.uid = strdup(from->uid);
	entry->hold.namespace = strdup(from->namespace);
	entry->hold.name = strdup(name);
	if (entry->hold.uid && entry->hold.namespace && entry->hold.name) {
		HASH_ADD_KEYPTR(
			hh, holds->entries, entry->hold.uid, strlen(entry->hold.uid), entry);
		if (!entry->is_lost)
			return entry;
	}
	free_entry(entry);
	return NULL;
}

static void set_text(char **text, const char *value)
{
	char *copy = value ? strdup(value) : NULL;

	free(*text);
	*text = copy;
}

void hold_set_version(struct hold *hold, const char *version)
{
	set_text(&hold->version, version);
}

/* Who waits for the hold looks at it again. */
static void tell(struct hold *hold)
{
	void (*changed)(void *) = hold->changed;

	hold->changed = NULL;
	if (changed)
		changed(hold->context);
}

static void stop_writing(struct hold *hold)
{
	struct entry *entry = (struct entry *)hold;

	loop_timer_clear(kube_client_loop(entry->holds->client), &entry->write_timer);
	promise_cancel(hold->writing);
	hold->writing = NULL;
}

/* What is promised for longer than the time that there is comes from a clock that was set since. */
static uint64_t until_ns(const struct holds *holds, const json_t *annotations)
{
	int64_t left_s = reservation_time_s(annotations) + holds->timeout_s - time(NULL);

	if (left_s < 0)
		left_s = 0;
	if (left_s > holds->timeout_s)
		left_s = holds->timeout_s;
	return clock_now_ns() + (uint64_t)left_s * SECOND_NS;
}

static int keep(struct holds *holds, const struct books_pod *from, const json_t *pod, bool is_own,
	struct hold **ret_hold)
{
	json_t *annotations = promise_copy(pod);
	struct hold *hold = holds_find(holds, from->uid);
	struct clear *clear = find_clear(holds, from->uid);
	struct entry *entry = NULL;

	if (annotations && !hold && (entry = add(holds, from, object_text(pod, "name"))))
		hold = &entry->hold;
	if (!annotations || !hold || books_set_pod(holds->books, from)) {
		json_decref(annotations);
		if (entry)
			holds_forget(holds, hold);
		return -ENOMEM;
	}
	if (clear)
		free_clear(clear);
	stop_writing(hold);
	json_decref(hold->annotations);
	hold->annotations = annotations;
	set_text(&hold->version, object_text(pod, "resourceVersion"));
	set_text(&hold->trouble, NULL);
	holds->kept_count += !hold->is_kept;
	hold->is_kept = true;
	hold->is_over = false;
	hold->is_own = is_own;
	hold->is_dirty |= !is_own;
	hold->until_ns = until_ns(holds, annotations);
	*ret_hold = hold;
	return 0;
}

int holds_keep(struct holds *holds, const json_t *pod, bool is_own, struct hold **ret_hold)
{
	struct reservation *reservation;
	struct err err = ERR_NULL;
	int result = reservation_read(holds->rules, pod, &reservation, &err);

	if (result)
		return result;
	result = keep(holds, reservation_pod(reservation), pod, is_own, ret_hold);
	reservation_free(reservation);
	return result;
}

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key));
}

bool holds_see(struct holds *holds, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *annotations = json_object_get(metadata, "annotations");
	const char *uid = json_string_value(json_object_get(metadata, "uid"));
	struct hold *hold = uid ? holds_find(holds, uid) : NULL;
	bool is_known = hold && is_same(hold->annotations, annotations, RESERVATION_TIME) &&
			is_same(hold->annotations, annotations, ASSIGNMENT_ALLOCATED);

	if (hold)
		hold->is_marked = false;
	if (!uid || (hold && hold->is_kept && hold->is_own) || is_known)
		return false;
	if (reservation_time_s(annotations) + holds->timeout_s > time(NULL) &&
		!holds_keep(holds, pod, false, &hold))
		return true;
	if (hold && hold->is_kept)
		holds_end(holds, hold, false);
	return false;
}

static struct clear *new_clear(struct holds *holds, const char *uid)
{
	struct clear *clear = calloc(1, sizeof(*clear));

	if (!clear || !(clear->uid = strdup(uid))) {
		free(clear);
		return NULL;
	}
	clear->link = &holds->clears;
	clear->next = holds->clears;
	if (clear->next)
		clear->next->link = &clear->next;
	holds->clears = clear;
	return clear;
}

static void was_cleared(void *context, const struct kube_result *result)
{
	struct clear *clear = context;

	if (result->outcome && result->outcome != KUBE_E_NOT_FOUND &&
		result->outcome != KUBE_E_INVALID)
		log_debug(
			"annotations of a pod that has no devices stay", STR("why", result->words));
	clear->promise = NULL;
	free_clear(clear);
}

void holds_clear(struct holds *holds, const struct promise_pod *pod)
{
	struct clear *clear;

	if (find_clear(holds, pod->uid))
		return;
	clear = new_clear(holds, pod->uid);
	if (clear && promise_write(holds->client, pod, NULL, was_cleared, clear, &clear->promise)) {
		clear->promise = NULL;
		free_clear(clear);
		clear = NULL;
	}
	if (!clear)
		log_warn("no memory to remove a pod's annotations");
}

static struct promise_pod pod_of(const struct hold *hold)
{
	return (struct promise_pod){
		hold->namespace, hold->name, hold->uid, hold->version ? hold->version : ""};
}

void holds_end(struct holds *holds, struct hold *hold, bool clears)
{
	struct promise_pod pod = pod_of(hold);

	if (!hold->is_kept)
		return;
	stop_writing(hold);
	hold->is_kept = false;
	holds->kept_count--;
	books_drop_pod(holds->books, hold->uid);
	nudge_freed(holds->nudge, hold_node(hold), false);
	if (clears && hold->is_dirty)
		holds_clear(holds, &pod);
	tell(hold);
}

/* Where nobody knows whether it was written it is taken off again. */
static void was_written(void *context, const struct kube_result *result)
{
	struct hold *hold = context;
	struct holds *holds = ((struct entry *)hold)->holds;

	hold->writing = NULL;
	if (!result->outcome) {
		set_text(&hold->version, object_text(result->body, "resourceVersion"));
		tell(hold);
		return;
	}
	log_warn("a promise could not be written onto its pod", STR("namespace", hold->namespace),
		STR("pod", hold->name), STR("why", result->words));
	set_text(&hold->trouble, result->words);
	holds_end(holds, hold, result->outcome != KUBE_E_NOT_FOUND);
}

static int send_promise(struct holds *holds, struct hold *hold)
{
	struct promise_pod pod = pod_of(hold);

	hold->is_dirty = true;
	return promise_write(
		holds->client, &pod, hold->annotations, was_written, hold, &hold->writing);
}

/* False: it is to be written now. */
static bool wait_for_quiet(struct holds *holds, struct entry *entry)
{
	uint64_t now = clock_now_ns(), until = holds->busy_ns + QUIET_NS;

	if (now >= until || now >= entry->kept_ns + LATE_NS)
		return false;
	loop_timer_set(kube_client_loop(holds->client), &entry->write_timer, until);
	return true;
}

/* A pod that is being bound needs no promise: its binding brings it, and a bind that fails takes it back. */
static void write_is_due(void *context)
{
	struct entry *entry = context;

	if (!entry->hold.bind && !wait_for_quiet(entry->holds, entry) &&
		send_promise(entry->holds, &entry->hold))
		was_written(&entry->hold,
			&(struct kube_result){.outcome = KUBE_E_UNREACHABLE, .words = "no memory"});
}

int holds_write(struct holds *holds, struct hold *hold)
{
	struct entry *entry = (struct entry *)hold;

	holds->busy_ns = entry->kept_ns = clock_now_ns();
	if (!hold->is_dirty && !holds->needs_labels && wait_for_quiet(holds, entry))
		return 0;
	return send_promise(holds, hold);
}

bool holds_is_writing(struct holds *holds, struct hold *hold)
{
	struct entry *entry = (struct entry *)hold;

	holds->busy_ns = clock_now_ns();
	loop_timer_clear(kube_client_loop(holds->client), &entry->write_timer);
	return hold->writing;
}

static void was_labelled(void *context, const struct kube_result *result)
{
	struct clear *label = context;

	if (result->outcome && result->outcome != KUBE_E_NOT_FOUND)
		log_warn("a pod has no label that names its node", STR("why", result->words));
	label->promise = NULL;
	free_clear(label);
}

void holds_see_bound(struct holds *holds, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *promised = demand_annotation(pod, RESERVATION_NODE),
		   *phase = demand_annotation(pod, RESERVATION_PHASE), *node = object_node(pod);
	struct promise_pod its = {.namespace = object_text(pod, "namespace"),
		.name = object_text(pod, "name"),
		.uid = object_text(pod, "uid")};
	struct clear *label;

	if (!promised || strcmp(promised, node) != 0 || !promise_is_label(node) || !phase ||
		strcmp(phase, RESERVATION_ALLOCATING) != 0 ||
		json_object_get(json_object_get(metadata, "labels"), RESERVATION_NODE) ||
		find_clear(holds, its.uid))
		return;
	holds->needs_labels = true;
	label = new_clear(holds, its.uid);
	if (label && promise_label(holds->client, &its, node, was_labelled, label, &label->promise))
		free_clear(label);
}

void holds_forget(struct holds *holds, struct hold *hold)
{
	struct entry *entry = (struct entry *)hold;

	holds->kept_count -= hold->is_kept;
	hold->is_kept = false;
	stop_writing(hold);
	tell(hold);
	hold->is_over = hold->bind;
	if (hold->bind)
		return;
	HASH_DEL(holds->entries, entry);
	free_entry(entry);
}

void holds_unbind(struct holds *holds, struct hold *hold)
{
	hold->bind = NULL;
	hold->changed = NULL;
	if (hold->is_over)
		holds_forget(holds, hold);
}

void holds_expire(struct holds *holds, bool clears)
{
	struct entry *entry, *next;
	uint64_t now = clock_now_ns();

	HASH_ITER(hh, holds->entries, entry, next)
	{
		struct hold *hold = &entry->hold;

		if (!hold->is_kept || hold->bind || hold->until_ns > now)
			continue;
		log_info("a pod was not bound in time; its devices are free again",
			STR("namespace", hold->namespace), STR("pod", hold->name));
		holds_end(holds, hold, clears);
	}
}

void holds_disown(struct holds *holds)
{
	struct entry *entry, *next;

	HASH_ITER(hh, holds->entries, entry, next)
	entry->hold.is_own = false;
}

void holds_mark(struct holds *holds)
{
	struct entry *entry, *next;

	HASH_ITER(hh, holds->entries, entry, next)
	entry->hold.is_marked = true;
}

void holds_sweep(struct holds *holds)
{
	struct entry *entry, *next;

	HASH_ITER(hh, holds->entries, entry, next)
	{
		if (!entry->hold.is_marked || entry->hold.bind)
			continue;
		if (entry->hold.is_kept)
			books_drop_pod(holds->books, entry->hold.uid);
		holds_forget(holds, &entry->hold);
	}
}

size_t holds_count(const struct holds *holds)
{
	return holds->kept_count;
}
