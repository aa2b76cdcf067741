/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of running pods are made larger or smaller. */
#include "plugin/resize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/wish.h"
#include "plugin/capacity.h"
#include "plugin/cluster/change.h"

#define LOG_TOPIC LOG_PODS

#define REFUSED	  "VgpuResizeRefused"
#define RESIZED	  "VgpuResized"

#define AGAIN_NS  (5ull * 1000000000) /* what does not fit now may fit then */
#define SETTLE_NS \
	(1ull * 1000000000) /* then all processes have taken a share over, many times (QUOTA_CHECK_NS) */
#define MIB_BYTES (UINT64_C(1) << 20)

struct resize {
	const struct cluster *cluster;
	const struct giver *giver;
	struct event_log *events;
	struct kube_call *call; /* NULL: nothing is under way */
	struct loop_timer again;
	char called_uid[40]; /* of the pod that the call is for */
};

static void tell(
	struct resize *resize, const struct pod *pod, const char *reason, const char *words)
{
	const bool is_warning = !strcmp(reason, REFUSED);

	log_info(is_warning ? "a slice is not resized" : "a slice is resized",
		STR("pod", pod->name), STR("namespace", pod->space), STR("why", words));
	if (resize->events)
		event_tell(resize->events, &(struct event){.namespace = pod->space,
						   .pod = pod->name,
						   .uid = pod->uid,
						   .reason = reason,
						   .message = words,
						   .is_warning = is_warning});
}

static void look_again_at(struct resize *resize, uint64_t due_ns)
{
	if (!resize->again.is_in || resize->again.due_ns > due_ns)
		loop_timer_set(resize->cluster->loop, &resize->again, due_ns);
}

static void let_rest_for(struct resize *resize, struct pod *pod, uint64_t rest_ns)
{
	pod->wish_rests_ns = clock_now_ns() + rest_ns;
	look_again_at(resize, pod->wish_rests_ns);
}

/* What could not be has to wait, so that it keeps back no other pod's wish. A pod may have another one at once. */
static void let_rest(struct resize *resize, struct pod *pod)
{
	let_rest_for(resize, pod, AGAIN_NS);
}

static bool rests(struct resize *resize, const struct pod *pod)
{
	if (clock_now_ns() >= pod->wish_rests_ns)
		return false;
	look_again_at(resize, pod->wish_rests_ns);
	return true;
}

static void again(void *context)
{
	resize_look(context);
}

static void was_allocated(void *context, const struct kube_result *result)
{
	struct resize *resize = context;
	struct pod *pod;

	resize->call = NULL;
	if (!result->outcome)
		pods_renew(resize->cluster->pods, result->body);
	pod = pods_find_uid(resize->cluster->pods, resize->called_uid);
	if (result->outcome && pod)
		let_rest(resize, pod);
	resize_look(resize);
}

/* What the pod was bound with has been handed out whole, and the pod runs here. */
static bool is_ripe(const struct resize *resize, const struct pod *pod)
{
	return pod->wish && pod->allocated && !pod->is_over && !pod->is_leaving && pod->node &&
	       pod->phase == POD_PHASE_SUCCESS && !pod_slots_left(pod) &&
	       !strcmp(pod->node, node_name(resize->cluster->node));
}

/* Of the container with that number among all of the pod's; NULL: it has no slice. */
static const char *name_of(const struct pod *pod, size_t container)
{
	for (unsigned i = 0; i < pod->container_count; i++)
		if (pod->containers[i].index == container)
			return pod->containers[i].name;
	return NULL;
}

/* What the share may say: no more than is allocated, which has to say it first, and no more than is wanted. */
static struct assignment_device least_of(
	const struct assignment_device *has, const struct assignment_device *wanted)
{
	struct assignment_device least = *wanted;

	if (has->memory_mib < wanted->memory_mib)
		least.memory_mib = has->memory_mib;
	if (has->cores_percent < wanted->cores_percent)
		least.cores_percent = has->cores_percent;
	return least;
}

/* A pod, what its allocation says, and what it is to say: slot by slot the same devices. */
struct change {
	struct resize *resize;
	struct pod *pod;
	struct wish_slots has, wanted;
};

static int write_share(const struct change *change, size_t slot, bool *has_changed, struct err *err)
{
	const struct giver *giver = change->resize->giver;
	const struct assignment_slot *has = &change->has.assignment.slots[slot],
				     *wanted = &change->wanted.assignment.slots[slot];
	struct prepare_resized resized = {.pod_uid = change->pod->uid,
		.container = name_of(change->pod, change->wanted.containers[slot])};
	struct share_device devices[SHARE_DEVICES];

	if (!resized.container)
		return 0;
	for (size_t i = 0; i < wanted->count && i < SHARE_DEVICES; i++) {
		struct assignment_device least = least_of(&has->devices[i], &wanted->devices[i]);

		devices[resized.count++] =
			grant_resized(&giver->node, &least, giver->node.has_turns);
	}
	resized.devices = devices;
	return prepare_resize(&giver->settings, &resized, has_changed, err);
}

static void tell_size(const struct change *change)
{
	char words[640];

	snprintf(words, sizeof(words), "slices are resized: %.560s", change->pod->allocated);
	tell(change->resize, change->pod, RESIZED, words);
	change->pod->shrunk_ns = 0;
}

static bool becomes_less(const struct change *change)
{
	const struct assignment *has = &change->has.assignment,
				*wanted = &change->wanted.assignment;

	for (size_t i = 0; i < wanted->count; i++)
		for (size_t k = 0; k < wanted->slots[i].count; k++)
			if (wanted->slots[i].devices[k].memory_mib <
				has->slots[i].devices[k].memory_mib)
				return true;
	return false;
}

/* The shares become less at once, and more when the allocation says it. */
static int write_shares(const struct change *change, struct err *err)
{
	bool has_changed = false;
	int r = 0;

	for (size_t i = 0; i < change->wanted.assignment.count && !r; i++) {
		bool has_slot_changed = false;

		if (change->wanted.assignment.slots[i].count)
			r = write_share(change, i, &has_slot_changed, err);
		has_changed |= has_slot_changed;
	}
	if (has_changed && becomes_less(change))
		change->pod->shrunk_ns = clock_now_ns();
	else if (has_changed)
		tell_size(change);
	return r;
}

/* MiB that a slice may hold: until its processes have the share that is less, and where its books cannot be read, all that it had. */
static int32_t held_mib(
	const struct change *change, size_t slot, const struct assignment_device *has)
{
	const char *container = name_of(change->pod, change->wanted.containers[slot]);
	uint64_t bytes;

	if (change->pod->shrunk_ns && clock_now_ns() - change->pod->shrunk_ns < SETTLE_NS)
		return has->memory_mib;
	if (!container || prepare_held_bytes(&change->resize->giver->settings, change->pod->uid,
				  container, has->uuid, &bytes))
		return has->memory_mib;
	bytes = (bytes + MIB_BYTES - 1) / MIB_BYTES;
	return bytes < (uint64_t)has->memory_mib ? (int32_t)bytes : has->memory_mib;
}

/* What is held counts until it is given back: else another pod would be given it. Whether there is such. */
static bool keep_what_is_held(struct change *change)
{
	bool is_held = false;

	for (size_t i = 0; i < change->wanted.assignment.count; i++) {
		struct assignment_slot *wanted = &change->wanted.assignment.slots[i];

		for (size_t k = 0; k < wanted->count; k++) {
			const struct assignment_device *has =
				&change->has.assignment.slots[i].devices[k];
			int32_t held;

			if (wanted->devices[k].memory_mib >= has->memory_mib)
				continue;
			held = held_mib(change, i, has);
			if (held <= wanted->devices[k].memory_mib)
				continue;
			wanted->devices[k].memory_mib = held;
			is_held = true;
		}
	}
	return is_held;
}

/* 0: a call is under way. */
static int allocate(const struct change *change)
{
	_cleanup_free_ char *text = NULL;
	struct change_pod pod;
	int r = assignment_encode(&change->wanted.assignment, &text);

	if (!r && !strcmp(text, change->pod->allocated))
		return -EALREADY;
	if (!r)
		r = change_pod_of(change->pod, &pod);
	if (r)
		return r;
	snprintf(change->resize->called_uid, sizeof(change->resize->called_uid), "%s",
		change->pod->uid);
	r = change_allocation(change->resize->cluster->client, &pod,
		&(struct change_text){change->pod->allocated, text}, change->pod->wish,
		was_allocated, change->resize, &change->resize->call);
	change_pod_deinit(&pod);
	return r;
}

static void wait_for_memory(const struct change *change)
{
	if (clock_now_ns() - change->pod->shrunk_ns < SETTLE_NS) {
		let_rest_for(change->resize, change->pod, SETTLE_NS);
		return;
	}
	tell(change->resize, change->pod, RESIZED,
		"slices are resized: what they hold beyond that counts until they give it back");
	let_rest(change->resize, change->pod);
}

/* 0: a call is under way. */
static int carry_out(struct change *change, struct err *err)
{
	bool is_held;
	int r = write_shares(change, err);

	if (r)
		return r;
	is_held = keep_what_is_held(change);
	r = allocate(change);
	if (r == -EALREADY && is_held)
		wait_for_memory(change);
	else if (r == -EALREADY && change->pod->shrunk_ns)
		tell_size(change);
	return r;
}

/* 0: a call is under way. */
static int look_at(struct resize *resize, struct pod *pod)
{
	_cleanup_free_ const char **names = calloc(pod->need_count + 1, sizeof(*names));
	struct wish_pod wish = {pod->wish, pod->allocated, names, pod->needs, pod->need_count};
	struct change change = {resize, pod, WISH_SLOTS_NULL, WISH_SLOTS_NULL};
	struct err err = ERR_NULL;
	int r;

	if (!names)
		return -ENOMEM;
	for (unsigned i = 0; i < pod->container_count; i++)
		names[pod->containers[i].index] = pod->containers[i].name;
	r = wish_apply(&wish, &change.wanted, &err);
	if (!r)
		r = wish_read_slots(&wish, pod->allocated, &change.has, &err);
	if (!r)
		r = capacity_check(
			&resize->giver->node, resize->cluster->pods, pod, &change.wanted, &err);
	if (!r)
		r = carry_out(&change, &err);
	if (*err.text) {
		tell(resize, pod, REFUSED, err.text);
		let_rest(resize, pod);
	}
	wish_clear_slots(&change.wanted);
	wish_clear_slots(&change.has);
	return r;
}

void resize_look(struct resize *resize)
{
	if (resize->call || !pods_are_known(resize->cluster->pods))
		return;
	for (struct pod *pod = pods_first(resize->cluster->pods); pod; pod = pod->next)
		if (is_ripe(resize, pod) && !rests(resize, pod) && !look_at(resize, pod))
			return;
}

int resize_new(const struct cluster *cluster, const struct giver *giver, struct event_log *events,
	struct resize **ret_resize)
{
	struct resize *resize = calloc(1, sizeof(*resize));

	if (!resize)
		return -ENOMEM;
	resize->cluster = cluster;
	resize->giver = giver;
	resize->events = events;
	resize->again = (struct loop_timer){.due = again, .context = resize};
	*ret_resize = resize;
	return 0;
}

void resize_free(struct resize *resize)
{
	if (!resize)
		return;
	kube_cancel(resize->call);
	loop_timer_clear(resize->cluster->loop, &resize->again);
	free(resize);
}
