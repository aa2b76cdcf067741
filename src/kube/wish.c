/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for its running slices. */
#include "kube/wish.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define WORDS_MOST 4096 /* of an annotation that is read */

static void cleanup_wish(json_t **wish)
{
	json_decref(*wish);
}

void wish_clear_slots(struct wish_slots *slots)
{
	assignment_deinit(&slots->assignment);
	free(slots->containers);
	slots->containers = NULL;
}

int wish_read_slots(const struct wish_pod *pod, const char *allocation,
	struct wish_slots *ret_slots, struct err *err)
{
	int r;

	if (!allocation)
		return err_set(err, EINVAL, "the pod has no slices");
	r = assignment_decode(allocation, &ret_slots->assignment, err);
	if (r)
		return r;
	ret_slots->containers =
		calloc(ret_slots->assignment.count + 1, sizeof(*ret_slots->containers));
	if (!ret_slots->containers)
		return err_set(err, ENOMEM, "no memory");
	return assignment_match(
		&ret_slots->assignment, pod->needs, pod->count, ret_slots->containers, err);
}

static int read_wish(const struct wish_pod *pod, json_t **ret_wish, struct err *err)
{
	*ret_wish = strlen(pod->text) > WORDS_MOST
			    ? NULL
			    : json_loads(pod->text, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(*ret_wish))
		return err_set(err, EINVAL,
			WISH_ANNOTATION
			" is not understood: "
			"{\"CONTAINER\": {\"gpumem\": MIB, \"gpucores\": PERCENT}} is right");
	return 0;
}

/* A whole number from 1 to most. What is not said is 0. */
static int read_amount(const char *container, const json_t *amounts, const char *key,
	json_int_t most, int32_t *ret_amount, struct err *err)
{
	const json_t *amount = json_object_get(amounts, key);
	json_int_t value = json_integer_value(amount);

	*ret_amount = 0;
	if (!amount)
		return 0;
	if (!json_is_integer(amount) || value < 1 || value > most)
		return err_set(err, EINVAL, "%s of container %.63s is not from 1 to %lld", key,
			container, (long long)most);
	*ret_amount = (int32_t)value;
	return 0;
}

static int change_slot(
	const char *container, const json_t *amounts, struct assignment_slot *slot, struct err *err)
{
	int32_t memory_mib, cores;
	int r = json_is_object(amounts)
			? 0
			: err_set(err, EINVAL, "what container %.63s wants is no object",
				  container);

	if (!r)
		r = read_amount(container, amounts, "gpumem", INT32_MAX, &memory_mib, err);
	if (!r)
		r = read_amount(container, amounts, "gpucores", 100, &cores, err);
	if (r)
		return r;
	for (size_t i = 0; i < slot->count; i++) {
		if (slot->devices[i].part[0])
			return err_set(err, EINVAL,
				"container %.63s has parts of devices, which do not change",
				container);
		if (memory_mib)
			slot->devices[i].memory_mib = memory_mib;
		if (cores)
			slot->devices[i].cores_percent = cores;
	}
	return 0;
}

int wish_apply(const struct wish_pod *pod, struct wish_slots *ret_slots, struct err *err)
{
	_cleanup_(cleanup_wish) json_t *wish = NULL;
	size_t found = 0;
	int r = read_wish(pod, &wish, err);

	if (!r)
		r = wish_read_slots(pod, pod->allocated, ret_slots, err);
	for (size_t i = 0; !r && i < ret_slots->assignment.count; i++) {
		struct assignment_slot *slot = &ret_slots->assignment.slots[i];
		const char *name = slot->count ? pod->names[ret_slots->containers[i]] : NULL;
		const json_t *amounts = name ? json_object_get(wish, name) : NULL;

		if (!amounts)
			continue;
		found++;
		r = change_slot(name, amounts, slot, err);
	}
	if (!r && found != json_object_size(wish))
		r = err_set(err, EINVAL, WISH_ANNOTATION " names a container without a slice");
	return r;
}
