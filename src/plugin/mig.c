/* SPDX-License-Identifier: Apache-2.0 */
/* The instances of GPUs that pods have reserved. */
#include "plugin/mig.h"

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

static bool overlaps(const struct partition *partition, const struct mig_claim *claim)
{
	return partition->start < claim->start + claim->size &&
	       claim->start < partition->start + partition->size;
}

/* The instance at exactly this place, or one that is in its way, or NULL. */
static const struct partition *find_in(const struct partitions *list, const struct mig_claim *claim)
{
	for (unsigned i = 0; i < list->count; i++)
		if (overlaps(&list->at[i], claim))
			return &list->at[i];
	return NULL;
}

static bool is_at(
	const struct partition *partition, const struct mig_claim *claim, unsigned profile_id)
{
	return partition->start == claim->start && partition->size == claim->size &&
	       partition->profile_id == profile_id;
}

/* Steps: the instance, then its compute instance. Each is looked for before it is made. */
static int give_one(const struct partition_gpu *gpu, const struct mig_claim *claim,
	const struct partition_profile *profile, bool *ret_is_new, struct partition *ret_partition,
	struct err *err)
{
	const struct partition *there;
	struct partitions list;
	unsigned instance;
	int r = partition_list(gpu, &list, err);

	*ret_is_new = false;
	if (r)
		return r;
	there = find_in(&list, claim);
	if (there && (!is_at(there, claim, profile->id) || there->is_cut))
		return err_set(err, EBUSY, "instance %u at %u:%u is in the way of %s at %u:%u",
			there->instance, there->start, there->size, claim->profile, claim->start,
			claim->size);
	if (!there) {
		r = partition_make(gpu, profile, claim->start, &instance, err);
		if (r)
			return r;
		ret_partition->instance = instance;
		*ret_is_new = true;
		FAULT("mig: made");
	} else {
		*ret_partition = *there;
		instance = there->instance;
	}
	if (!there || !there->is_whole)
		r = partition_fill(gpu, instance, err);
	FAULT("mig: filled");
	if (!r)
		r = partition_list(gpu, &list, err);
	there = r ? NULL : find_in(&list, claim);
	if (!r && (!there || !there->is_whole || !there->uuid[0]))
		r = err_set(err, EIO, "instance %u has no device", instance);
	if (!r)
		*ret_partition = *there;
	return r;
}

/* Exactly as reserved: no other place or size would do, for the scheduler counts on it. */
static int give(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct mig_claim *claim, bool *ret_is_new, struct partition *ret_partition,
	struct err *err)
{
	const struct partition_profile *profile;
	struct partition_gpu gpu;
	int r = partition_find_gpu(nvml, node, claim->gpu_uuid, &gpu, err);

	*ret_is_new = false;
	if (r)
		return r;
	profile = partition_find_profile(&gpu, claim->profile, claim->size);
	if (!profile || !is_place_of(profile, claim->start))
		return err_set(err, EINVAL, "GPU %.80s has no place for %.20s at %u:%u",
			claim->gpu_uuid, claim->profile, claim->start, claim->size);
	r = partition_enable(&gpu, err);
	return r ? r : give_one(&gpu, claim, profile, ret_is_new, ret_partition, err);
}

/* Nobody was given it yet, so nobody uses it. */
static void take_back(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct mig_claim *claim, unsigned instance)
{
	struct err ignored = ERR_NULL;
	struct partition_gpu gpu;

	if (!partition_find_gpu(nvml, node, claim->gpu_uuid, &gpu, &ignored) &&
		partition_remove(&gpu, instance, &ignored))
		return; /* mig_sweep() finds it */
}

int mig_give(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct mig_claim *claims, unsigned count, struct mig_part *ret_parts, struct err *err)
{
	struct partition partition = {.instance = 0};
	uint64_t made = 0;
	int r = count <= 64 ? 0 : err_set(err, EINVAL, "%u instances for one container", count);

	for (unsigned i = 0; i < count && !r; i++) {
		bool is_new;

		r = give(nvml, node, &claims[i], &is_new, &partition, err);
		made |= (uint64_t)is_new << i;
		ret_parts[i].instance = partition.instance;
		if (r)
			break;
		ret_parts[i].compute = partition.compute;
		memcpy(ret_parts[i].uuid, partition.uuid, sizeof(partition.uuid));
	}
	for (unsigned i = 0; i < count && r; i++)
		if (made >> i & 1)
			take_back(nvml, node, &claims[i], ret_parts[i].instance);
	return r;
}

bool mig_is_given(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct mig_claim *claim, const struct mig_part *part)
{
	const struct partition *there;
	struct err ignored = ERR_NULL;
	struct partition_gpu gpu;
	struct partitions list;

	if (partition_find_gpu(nvml, node, claim->gpu_uuid, &gpu, &ignored) ||
		partition_list(&gpu, &list, &ignored))
		return false;
	there = find_in(&list, claim);
	return there && there->is_whole && there->start == claim->start &&
	       there->size == claim->size && there->instance == part->instance &&
	       there->compute == part->compute && !strcmp(there->uuid, part->uuid);
}

/* By its place alone: what its program uses is not taken away for a profile's name. */
static bool is_claimed(const struct partition *partition, const char *gpu_uuid,
	const struct mig_claim *claims, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(claims[i].gpu_uuid, gpu_uuid) && partition->start == claims[i].start &&
			partition->size == claims[i].size)
			return true;
	return false;
}

unsigned mig_sweep(const struct nvml_driver *nvml, const struct nvml_node *node,
	const char *gpu_uuid, const struct mig_claim *claims, unsigned count)
{
	struct err ignored = ERR_NULL;
	struct partition_gpu gpu;
	struct partitions list;
	unsigned left = 0;

	if (partition_find_gpu(nvml, node, gpu_uuid, &gpu, &ignored) ||
		partition_list(&gpu, &list, &ignored))
		return 0;
	for (unsigned i = 0; i < list.count; i++) {
		if (is_claimed(&list.at[i], gpu_uuid, claims, count))
			continue;
		left += partition_remove(&gpu, list.at[i].instance, &ignored) != 0;
		FAULT("mig: removed");
	}
	return left;
}
