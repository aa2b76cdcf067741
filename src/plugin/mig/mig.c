/* SPDX-License-Identifier: Apache-2.0 */
/* The instances of GPUs that pods have reserved. */
#include "plugin/mig/mig.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"

static bool is_place_of(const struct partition_profile *profile, unsigned start)
{
	for (unsigned i = 0; i < profile->place_count; i++)
		if (profile->start[i] == start)
			return true;
	return false;
}

static bool overlaps(const struct partition *partition, const struct instance *claim)
{
	return partition->start < claim->start + claim->size &&
	       claim->start < partition->start + partition->size;
}

/* The instance at exactly this place, or one that is in its way, or NULL. */
static const struct partition *find_in(const struct partitions *list, const struct instance *claim)
{
	for (unsigned i = 0; i < list->count; i++)
		if (overlaps(&list->at[i], claim))
			return &list->at[i];
	return NULL;
}

/* Whether it is the one that was given for this claim. */
static bool is_given(const struct partition *partition, const struct instance *claim)
{
	return claim->is_given && partition->is_whole && partition->start == claim->start &&
	       partition->size == claim->size && partition->instance == claim->instance &&
	       partition->compute == claim->compute && !strcmp(partition->uuid, claim->uuid);
}

/* The instance, then the compute instance that has all of it. */
static int make(const struct partition_gpu *gpu, const struct partition_profile *profile,
	struct instance *claim, bool *ret_is_new, struct err *err)
{
	const struct partition *there;
	struct partitions list;
	int r = partition_make(gpu, profile, claim->start, &claim->instance, err);

	if (r)
		return r;
	*ret_is_new = true;
	FAULT("mig: made");
	r = partition_fill(gpu, claim->instance, err);
	FAULT("mig: filled");
	if (!r)
		r = partition_list(gpu, &list, err);
	there = r ? NULL : find_in(&list, claim);
	if (!r && (!there || !there->is_whole || !there->uuid[0]))
		r = err_set(err, EIO, "instance %u has no device", claim->instance);
	if (r)
		return r;
	claim->compute = there->compute;
	memcpy(claim->uuid, there->uuid, sizeof(there->uuid));
	claim->is_given = true;
	return 0;
}

static int give_one(const struct partition_gpu *gpu, const struct partition_profile *profile,
	struct instance *claim, bool *ret_is_new, struct err *err)
{
	const struct partition *there;
	struct partitions list;
	int r = partition_list(gpu, &list, err);

	if (r)
		return r;
	there = find_in(&list, claim);
	if (there && !is_given(there, claim))
		return err_set(err, EBUSY, "instance %u at %u:%u is in the way of %s at %u:%u",
			there->instance, there->start, there->size, claim->profile, claim->start,
			claim->size);
	return there ? 0 : make(gpu, profile, claim, ret_is_new, err);
}

/* Exactly as reserved: no other place or size would do, for the scheduler counts on it. */
static int give(const struct nvml_driver *nvml, const struct nvml_node *node,
	struct instance *claim, bool *ret_is_new, struct err *err)
{
	const struct partition_profile *profile;
	struct partition_gpu gpu;
	int r = partition_find_gpu(nvml, node, claim->gpu, &gpu, err);

	if (r)
		return r;
	profile = partition_find_profile(&gpu, claim->profile, claim->size);
	if (!profile || !is_place_of(profile, claim->start))
		return err_set(err, EINVAL, "GPU %.80s has no place for %.20s at %u:%u", claim->gpu,
			claim->profile, claim->start, claim->size);
	r = partition_enable(&gpu, err);
	return r ? r : give_one(&gpu, profile, claim, ret_is_new, err);
}

/* Nobody was given it yet, so nobody uses it. What cannot be removed now mig_sweep() finds. */
static void take_back(
	const struct nvml_driver *nvml, const struct nvml_node *node, const struct instance *claim)
{
	struct err ignored = ERR_NULL;
	struct partition_gpu gpu;

	if (!partition_find_gpu(nvml, node, claim->gpu, &gpu, &ignored))
		(void)!partition_remove(&gpu, claim->instance, &ignored);
}

int mig_give(const struct nvml_driver *nvml, const struct nvml_node *node, struct instance *wanted,
	unsigned count, struct err *err)
{
	struct instance given[64];
	uint64_t made = 0;
	int r = count <= ARRAY_SIZE(given)
			? 0
			: err_set(err, EINVAL, "%u instances for one container", count);

	for (unsigned i = 0; i < count && !r; i++) {
		bool is_new = false;

		given[i] = wanted[i];
		r = give(nvml, node, &given[i], &is_new, err);
		made |= (uint64_t)is_new << i;
	}
	for (unsigned i = 0; i < count; i++)
		if (!r)
			wanted[i] = given[i];
		else if (made >> i & 1)
			take_back(nvml, node, &given[i]);
	return r;
}

bool mig_is_there(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct instance *instance)
{
	const struct partition *there;
	struct err ignored = ERR_NULL;
	struct partition_gpu gpu;
	struct partitions list;

	if (partition_find_gpu(nvml, node, instance->gpu, &gpu, &ignored) ||
		partition_list(&gpu, &list, &ignored))
		return false;
	there = find_in(&list, instance);
	return there && is_given(there, instance);
}

/* By its place alone: what its program uses is not taken away for a profile's name. */
static bool is_claimed(const struct partition *partition, const char *gpu_uuid,
	const struct instance *claims, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(claims[i].gpu, gpu_uuid) && partition->start == claims[i].start &&
			partition->size == claims[i].size)
			return true;
	return false;
}

unsigned mig_sweep(const struct nvml_driver *nvml, const struct nvml_node *node,
	const char *gpu_uuid, const struct instance *claims, size_t count, unsigned *ret_removed)
{
	struct err ignored = ERR_NULL;
	struct partition_gpu gpu;
	struct partitions list;
	unsigned left = 0;

	*ret_removed = 0;
	if (partition_find_gpu(nvml, node, gpu_uuid, &gpu, &ignored) ||
		partition_list(&gpu, &list, &ignored))
		return 0;
	for (unsigned i = 0; i < list.count; i++) {
		if (is_claimed(&list.at[i], gpu_uuid, claims, count))
			continue;
		if (partition_remove(&gpu, list.at[i].instance, &ignored))
			left++;
		else
			++*ret_removed;
		FAULT("mig: removed");
	}
	return left;
}
