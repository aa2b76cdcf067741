/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the free slices a container had best be given. */
#include "plugin/grant/prefer.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/assignment.h"
#include "plugin/grant/grant.h"

static bool is_on(const char *id, const char *uuid)
{
	return strlen(uuid) == grant_id_device(id) && !strncmp(id, uuid, strlen(uuid));
}

static bool is_taken(const char *id, const char *const *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(ids[i], id))
			return true;
	return false;
}

/* "…-2" comes before "…-10". */
static bool is_lower(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? x < y : strcmp(a, b) < 0;
}

/* The lowest of a device that is not taken yet, or NULL. */
static const char *lowest(char *const *ids, size_t count, const char *uuid,
	const char *const *taken, size_t taken_count)
{
	const char *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (is_on(ids[i], uuid) && !is_taken(ids[i], taken, taken_count) &&
			(!found || is_lower(ids[i], found)))
			found = ids[i];
	return found;
}

int prefer_reserved(const char *slot, const struct prefer_request *request, const char **ret_ids)
{
	_cleanup_(assignment_deinit) struct assignment assignment = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;
	size_t musts = 0;

	if (assignment_decode(slot, &assignment, &err) || !assignment.count ||
		assignment.slots[0].count != request->wanted)
		return -ENODATA;
	for (size_t i = 0; i < request->wanted; i++) {
		const char *uuid = assignment.slots[0].devices[i].uuid,
			   *id = lowest(request->must_ids, request->must_count, uuid, ret_ids, i);

		musts += id != NULL;
		if (!id)
			id = lowest(request->free_ids, request->free_count, uuid, ret_ids, i);
		if (!id)
			return -ENODATA;
		ret_ids[i] = id;
	}
	return musts == request->must_count ? 0 : -ENODATA;
}

static unsigned count_on(char *const *ids, size_t count, const char *uuid)
{
	unsigned on = 0;

	for (size_t i = 0; i < count; i++)
		on += is_on(ids[i], uuid);
	return on;
}

struct candidate {
	unsigned device, musts, free;
};

/* Those that must be in it first, and then those with most free slices. */
static bool goes_before(const struct candidate *a, const struct candidate *b)
{
	return !a->musts != !b->musts ? a->musts != 0 : a->free > b->free;
}

/* Devices with free slices, in the order of the wish; *ret_musts of these must be in it. */
static unsigned list_candidates(const struct prefer_request *request,
	unsigned ret_devices[INVENTORY_MAX], unsigned *ret_musts)
{
	struct candidate list[INVENTORY_MAX];
	unsigned count = 0;

	*ret_musts = 0;
	for (unsigned i = 0; i < request->devices->count; i++) {
		const char *uuid = request->devices->device[i].uuid;
		struct candidate one = {i, count_on(request->must_ids, request->must_count, uuid),
			count_on(request->free_ids, request->free_count, uuid)};
		unsigned at = count;

		if (!one.musts && !one.free)
			continue;
		for (; at && goes_before(&one, &list[at - 1]); at--)
			list[at] = list[at - 1];
		list[at] = one;
		count++;
		*ret_musts += one.musts != 0;
	}
	for (unsigned i = 0; i < count; i++)
		ret_devices[i] = list[i].device;
	return count;
}

int prefer_nearest(const struct prefer_request *request, const char **ret_ids)
{
	unsigned devices[INVENTORY_MAX], chosen[INVENTORY_MAX], musts;
	struct topology_wish wish = {.free = devices, .wanted = (unsigned)request->wanted};

	if (request->wanted > INVENTORY_MAX)
		return -ENODATA;
	wish.count = list_candidates(request, devices, &musts);
	wish.must = musts;
	/* two of one device that must be in it, or one of no device that is known */
	if (musts != request->must_count || topology_choose(request->topology, &wish, chosen))
		return -ENODATA;
	for (size_t i = 0; i < request->wanted; i++) {
		const char *uuid = request->devices->device[chosen[i]].uuid;

		ret_ids[i] = lowest(request->must_ids, request->must_count, uuid, ret_ids, i);
		if (!ret_ids[i])
			ret_ids[i] =
				lowest(request->free_ids, request->free_count, uuid, ret_ids, i);
	}
	return 0;
}
