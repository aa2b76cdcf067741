/* SPDX-License-Identifier: Apache-2.0 */
/* Instances that pods have reserved. */
#include "plugin/mig/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int add_claims(const struct pod *pod, struct instances *claims)
{
	struct instances some, grown;
	int r = instances_decode_some(pod->instances, &some);

	if (r)
		return r;
	grown.at = realloc(claims->at, (claims->count + some.count + 1) * sizeof(*grown.at));
	if (grown.at) {
		memcpy(&grown.at[claims->count], some.at, some.count * sizeof(*some.at));
		claims->at = grown.at;
		claims->count += some.count;
	}
	instances_deinit(&some);
	return grown.at ? 0 : -ENOMEM;
}

/* Of all pods that are not over, but for those of one container. */
int claims_list(
	const struct pod *first, const struct claims_wanted *but, struct instances *ret_claims)
{
	struct instances claims = INSTANCES_NULL;

	for (const struct pod *pod = first; pod; pod = pod->next) {
		size_t kept = claims.count;

		if (!pod->is_over && add_claims(pod, &claims)) {
			instances_deinit(&claims);
			return -ENOMEM;
		}
		for (size_t i = kept; i < claims.count; i++)
			if (!but || pod != but->pod || claims.at[i].container != but->container)
				claims.at[kept++] = claims.at[i];
		claims.count = kept;
	}
	*ret_claims = claims;
	return 0;
}

static bool has_slice(const struct pod *pod, const char *gpu)
{
	_cleanup_(assignment_deinit) struct assignment all = ASSIGNMENT_NULL;
	struct err ignored = ERR_NULL;
	int r = pod->allocated ? assignment_decode(pod->allocated, &all, &ignored) : 0;

	if (r)
		return r == -ENOMEM;
	for (size_t i = 0; i < all.count; i++)
		for (size_t k = 0; k < all.slots[i].count; k++)
			if (!strcmp(all.slots[i].devices[k].uuid, gpu))
				return true;
	return false;
}

static bool has_instance(const struct pod *pod, const char *gpu)
{
	struct instances its;
	bool has = false;

	if (instances_decode_some(pod->instances, &its))
		return false;
	for (size_t i = 0; i < its.count && !has; i++)
		has = !strcmp(its.at[i].gpu, gpu);
	instances_deinit(&its);
	return has;
}

/* Also where there is no memory: nothing is removed then. */
static bool is_unknown(const struct pod *pod, const char *gpu)
{
	return has_slice(pod, gpu) && !has_instance(pod, gpu);
}

bool claims_are_unknown(const struct pod *first, const char *gpu)
{
	for (const struct pod *pod = first; pod; pod = pod->next)
		if (!pod->is_over && is_unknown(pod, gpu))
			return true;
	return false;
}

static struct instance *find_entry(
	const struct instances *list, unsigned container, unsigned device)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].container == container && list->at[i].device == device)
			return &list->at[i];
	return NULL;
}

/* Exactly one for each device of the slot, and of the same GPU. What the pod says that it was given is not believed. */
int claims_choose(const struct claims_wanted *wanted, const struct instances *list,
	struct claims_given *given, struct err *err)
{
	size_t reserved = 0;

	for (size_t i = 0; i < list->count; i++)
		reserved += list->at[i].container == wanted->container;
	if (reserved != wanted->slot->count || reserved > SHARE_DEVICES)
		return err_set(err, EINVAL,
			"%zu instances are reserved for the container, and %zu are assigned",
			reserved, wanted->slot->count);
	for (unsigned i = 0; i < reserved; i++) {
		const struct instance *entry = find_entry(list, wanted->container, i);
		const char *gpu = wanted->slot->devices[i].uuid;

		if (!entry)
			return err_set(err, EINVAL,
				"no instance is reserved for device %u of the container", i);
		if (strcmp(entry->gpu, gpu) != 0)
			return err_set(err, EINVAL,
				"an instance of %.80s is reserved, and %.80s is assigned",
				entry->gpu, gpu);
		given->instances[i] = *entry;
		given->instances[i].is_given = false;
	}
	given->count = (unsigned)reserved;
	return 0;
}

static bool overlaps(const struct instance *a, const struct instance *b)
{
	return !strcmp(a->gpu, b->gpu) && a->start < b->start + b->size &&
	       b->start < a->start + a->size;
}

/* What another has been given is its own, whatever this one's annotation says. */
int claims_check(const struct instances *claims, const struct claims_given *given, struct err *err)
{
	for (unsigned i = 0; i < given->count; i++)
		for (size_t k = 0; k < claims->count; k++)
			if (claims->at[k].is_given &&
				overlaps(&claims->at[k], &given->instances[i]))
				return err_set(err, EBUSY,
					"another container was given %s, which has the place of %s "
					"at "
					"%u:%u",
					claims->at[k].uuid, given->instances[i].profile,
					given->instances[i].start, given->instances[i].size);
	return 0;
}

static bool holds(const struct pod *pod, const struct instance *place, bool is_given)
{
	struct instances its;
	bool holds = false;

	if (instances_decode_some(pod->instances, &its))
		return false;
	for (size_t i = 0; i < its.count && !holds; i++)
		holds = (its.at[i].is_given || !is_given) && overlaps(&its.at[i], place);
	instances_deinit(&its);
	return holds || (!is_given && is_unknown(pod, place->gpu));
}

static const struct pod *find_holder(
	const struct claims_wanted *wanted, const struct claims_given *given, bool is_given)
{
	for (const struct pod *pod = wanted->first; pod; pod = pod->next)
		for (unsigned i = 0; i < given->count; i++)
			if (pod != wanted->pod && !pod->is_over &&
				holds(pod, &given->instances[i], is_given))
				return pod;
	return NULL;
}

const struct pod *claims_find_holder(
	const struct claims_wanted *wanted, const struct claims_given *given)
{
	const struct pod *holder = find_holder(wanted, given, true);

	return holder ? holder : find_holder(wanted, given, false);
}

int claims_record(const struct instances *list, const struct claims_wanted *wanted,
	struct claims_given *given)
{
	for (unsigned i = 0; i < given->count; i++)
		*find_entry(list, wanted->container, i) = given->instances[i];
	return instances_encode(list, &given->annotation);
}
