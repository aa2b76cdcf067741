/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are kept for pods which are not bound yet. */
#include "scheduler/holds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/assignment.h"
#include "scheduler/hash.h"
#include "scheduler/reservation.h"

#define LOG_TOPIC LOG_PODS

struct entry {
	struct hold hold; /* first */
	bool is_lost;
	UT_hash_handle hh;
};

/* The annotations of a pod that are being removed. */
struct clear {
	struct holds *holds;
	struct kube_call *call;
	char *uid;
	void (*done)(void *); /* NULL: nobody waits */
	void *context;
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
};

static const char *const keys[] = {RESERVATION_NODE, RESERVATION_TIME, ASSIGNMENT_TO_ALLOCATE,
	ASSIGNMENT_ALLOCATED, RESERVATION_INSTANCES};

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
	json_decref(entry->hold.annotations);
	free(entry->hold.uid);
	free(entry->hold.namespace);
	free(entry->hold.name);
	free(entry);
}

static void free_clear(struct clear *clear)
{
	kube_cancel(clear->call);
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

static json_t *copy_annotations(const json_t *pod)
{
	const json_t *all = json_object_get(json_object_get(pod, "metadata"), "annotations");
	json_t *copy = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys) && copy; i++) {
		json_t *value = json_object_get(all, keys[i]);

		if (value && json_object_set(copy, keys[i], value)) {
			json_decref(copy);
			copy = NULL;
		}
	}
	return copy;
}

static struct entry *add(struct holds *holds, const struct books_pod *from, const char *name)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
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

static int keep(struct holds *holds, const struct books_pod *from, const json_t *pod, bool is_own,
	struct hold **ret_hold)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(pod, "metadata"), "name"));
	json_t *annotations = copy_annotations(pod);
	struct hold *hold = holds_find(holds, from->uid);
	struct entry *entry = NULL;

	if (annotations && !hold && (entry = add(holds, from, name ? name : "")))
		hold = &entry->hold;
	if (!annotations || !hold || books_set_pod(holds->books, from)) {
		json_decref(annotations);
		if (entry)
			holds_forget(holds, hold);
		return -ENOMEM;
	}
	json_decref(hold->annotations);
	hold->annotations = annotations;
	holds->kept_count += !hold->is_kept;
	hold->is_kept = true;
	hold->is_own = is_own;
	hold->until_s = reservation_time_s(annotations) + holds->timeout_s;
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

void holds_see(struct holds *holds, const json_t *pod)
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
		return;
	if (reservation_time_s(annotations) + holds->timeout_s > time(NULL) &&
		!holds_keep(holds, pod, false, &hold))
		return;
	if (hold && hold->is_kept)
		holds_end(holds, hold, false);
}

static struct clear *find_clear(const struct holds *holds, const char *uid)
{
	struct clear *clear = holds->clears;

	while (clear && strcmp(clear->uid, uid) != 0)
		clear = clear->next;
	return clear;
}

static struct clear *new_clear(struct holds *holds, const char *uid)
{
	struct clear *clear = calloc(1, sizeof(*clear));

	if (!clear || !(clear->uid = strdup(uid))) {
		free(clear);
		return NULL;
	}
	clear->holds = holds;
	clear->link = &holds->clears;
	clear->next = holds->clears;
	if (clear->next)
		clear->next->link = &clear->next;
	holds->clears = clear;
	return clear;
}

bool holds_await_clear(
	struct holds *holds, const char *uid, void (*done)(void *context), void *context)
{
	struct clear *clear = find_clear(holds, uid);

	if (!clear)
		return false;
	clear->done = done;
	clear->context = context;
	return true;
}

static void was_cleared(void *context, const struct kube_result *result)
{
	struct clear *clear = context;
	void (*done)(void *) = clear->done;
	void *waiting = clear->context;

	if (result->outcome && result->outcome != KUBE_E_NOT_FOUND)
		log_debug(
			"annotations of a pod that has no devices stay", STR("why", result->words));
	clear->call = NULL;
	free_clear(clear);
	if (done)
		done(waiting);
}

void holds_clear(struct holds *holds, const char *namespace, const char *name, const char *uid)
{
	/* nothing is written to the pod while one is under way: another would find the same */
	struct clear *clear = find_clear(holds, uid) ? NULL : new_clear(holds, uid);
	json_t *none, *patch;
	_cleanup_free_ char *path = NULL;

	if (!clear) {
		if (!find_clear(holds, uid))
			log_warn("no memory to remove a pod's annotations");
		return;
	}
	none = json_object();
	patch = json_pack("{s:{s:s, s:O, s:{s:n}}}", "metadata", "uid", uid, "annotations", none,
		"labels", RESERVATION_NODE);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		json_object_set_new(none, keys[i], json_null());
	if (asprintf(&path, "/api/v1/namespaces/%s/pods/%s", namespace, name) < 0)
		path = NULL;
	if (!path || !patch ||
		kube_patch(holds->client, path, patch, NULL, was_cleared, clear, &clear->call)) {
		log_warn("no memory to remove a pod's annotations");
		clear->call = NULL;
		free_clear(clear);
	}
	json_decref(none);
	json_decref(patch);
}

void holds_end(struct holds *holds, struct hold *hold, bool clears)
{
	if (!hold->is_kept)
		return;
	hold->is_kept = false;
	holds->kept_count--;
	books_drop_pod(holds->books, hold->uid);
	nudge_freed(holds->nudge, hold_node(hold), false);
	if (clears)
		holds_clear(holds, hold->namespace, hold->name, hold->uid);
}

void holds_forget(struct holds *holds, struct hold *hold)
{
	struct entry *entry = (struct entry *)hold;

	holds->kept_count -= hold->is_kept;
	hold->is_kept = false;
	if (hold->bind || hold->filter)
		return;
	HASH_DEL(holds->entries, entry);
	free_entry(entry);
}

void holds_expire(struct holds *holds, int64_t now_s, bool clears)
{
	struct entry *entry, *next;

	HASH_ITER(hh, holds->entries, entry, next)
	{
		struct hold *hold = &entry->hold;

		if (!hold->is_kept || hold->bind || hold->filter || hold->until_s > now_s)
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
		if (!entry->hold.is_marked || entry->hold.bind || entry->hold.filter)
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
