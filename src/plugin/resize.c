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

static void look_again_later(struct resize *resize)
{
	if (!resize->again.is_in)
		loop_timer_set(resize->cluster->loop, &resize->again, clock_now_ns() + AGAIN_NS);
}

/* What could not be has to wait, so that it keeps back no other pod's wish. A pod may have another one at once. */
static void let_rest(struct resize *resize, struct pod *pod)
{
	pod->wish_rests_ns = clock_now_ns() + AGAIN_NS;
	look_again_later(resize);
}

static bool rests(struct resize *resize, const struct pod *pod)
{
	if (clock_now_ns() >= pod->wish_rests_ns)
		return false;
	look_again_later(resize);
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

static int write_share(struct resize *resize, const struct pod *pod, const char *container,
	const struct assignment_slot *slot, bool *has_changed, struct err *err)
{
	struct share_device devices[SHARE_DEVICES];
	unsigned count = 0;

	for (size_t i = 0; i < slot->count && count < SHARE_DEVICES; i++)
		devices[count++] = grant_resized(
			&resize->giver->node, &slot->devices[i], resize->giver->node.has_turns);
	return prepare_resize(&resize->giver->settings,
		&(struct prepare_resized){pod->uid, container, devices, count}, has_changed, err);
}

/* The allocation says it: what of the shares does not is written. */
static void follow(struct resize *resize, struct pod *pod, const struct wish_slots *wanted)
{
	char words[640];
	bool has_changed = false;
	struct err err = ERR_NULL;
	int r = 0;

	for (size_t i = 0; i < wanted->assignment.count && !r; i++) {
		const struct assignment_slot *slot = &wanted->assignment.slots[i];
		const char *container = slot->count ? name_of(pod, wanted->containers[i]) : NULL;

		if (container)
			r = write_share(resize, pod, container, slot, &has_changed, &err);
	}
	if (r) {
		tell(resize, pod, REFUSED, err.text);
		let_rest(resize, pod);
	} else if (has_changed) {
		snprintf(words, sizeof(words), "slices are resized: %.560s", pod->allocated);
		tell(resize, pod, RESIZED, words);
	}
}

/* 0: a call is under way. */
static int allocate(struct resize *resize, struct pod *pod, const struct wish_slots *wanted)
{
	_cleanup_free_ char *text = NULL;
	struct change_pod change;
	int r = assignment_encode(&wanted->assignment, &text);

	if (!r && !strcmp(text, pod->allocated)) {
		follow(resize, pod, wanted);
		return -EALREADY;
	}
	if (!r)
		r = change_pod_of(pod, &change);
	if (r)
		return r;
	snprintf(resize->called_uid, sizeof(resize->called_uid), "%s", pod->uid);
	r = change_allocation(resize->cluster->client, &change,
		&(struct change_text){pod->allocated, text}, pod->wish, was_allocated, resize,
		&resize->call);
	change_pod_deinit(&change);
	return r;
}

/* 0: a call is under way. */
static int look_at(struct resize *resize, struct pod *pod)
{
	_cleanup_(wish_clear_slots) struct wish_slots wanted = WISH_SLOTS_NULL;
	_cleanup_free_ const char **names = calloc(pod->need_count + 1, sizeof(*names));
	struct wish_pod wish = {pod->wish, pod->allocated, names, pod->needs, pod->need_count};
	struct err err = ERR_NULL;
	int r;

	if (!names)
		return -ENOMEM;
	for (unsigned i = 0; i < pod->container_count; i++)
		names[pod->containers[i].index] = pod->containers[i].name;
	r = wish_apply(&wish, &wanted, &err);
	if (!r)
		r = capacity_check(&resize->giver->node, resize->cluster->pods, pod, &wanted, &err);
	if (!r)
		return allocate(resize, pod, &wanted);
	tell(resize, pod, REFUSED, err.text);
	let_rest(resize, pod);
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
