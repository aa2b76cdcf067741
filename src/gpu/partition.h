/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs that are cut into instances (MIG), through NVML. Nothing is kept here: what there is, is asked each time, so a
 * program that ends between two steps leaves what the next one finds.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "gpu/driver.h"
#include "gpu/uuid.h"

#define PARTITION_NAME_BYTES 24
#define PARTITIONS_MAX	     8 /* of one GPU */
#define PARTITION_PLACES_MAX 8

/* How a GPU can be cut. */
struct partition_profile {
	char name[PARTITION_NAME_BYTES]; /* "1g.10gb" */
	unsigned id, kind;		 /* NVML's two numbers */
	unsigned slices, most;		 /* of processors; instances of an empty GPU */
	unsigned multiprocessors;
	uint64_t memory_mib;
	unsigned start[PARTITION_PLACES_MAX], place_count, size; /* in slices of memory */
};

struct partition_profiles {
	struct partition_profile at[NVML_GPU_INSTANCE_PROFILE_COUNT];
	unsigned count;
};

/* An instance of a GPU. */
struct partition {
	unsigned instance, profile_id;
	unsigned start, size;
	bool is_whole; /* one compute instance has all of its processors: programs can use it */
	bool is_cut;   /* it has other compute instances */
	unsigned compute;
	char uuid[UUID_TEXT_BYTES]; /* "MIG-..."; empty unless is_whole */
};

struct partitions {
	struct partition at[PARTITIONS_MAX];
	unsigned count;
};

struct partition_gpu {
	const struct nvml_driver *nvml;
	const struct nvml_node *node;
	nvmlDevice_t device;
	struct partition_profiles profiles;
};

/* NVML is begun. -ENODEV, with err set: no such GPU, or it has no MIG, or a driver too old for it. */
int partition_find_gpu(const struct nvml_driver *nvml, const struct nvml_node *node,
	const char *uuid, struct partition_gpu *ret_gpu, struct err *err) MUST_CHECK;

/* The GPU is in MIG mode, or is brought into it. -EBUSY with err set: something uses it, or it needs a reset. */
int partition_enable(const struct partition_gpu *gpu, struct err *err) MUST_CHECK;

/* NULL: none is called so, or has that size. */
const struct partition_profile *partition_find_profile(
	const struct partition_gpu *gpu, const char *name, unsigned size);

/* What there is. -EIO with err set. */
int partition_list(
	const struct partition_gpu *gpu, struct partitions *ret_list, struct err *err) MUST_CHECK;

/* Makes an instance there, without a compute instance. -ENOSPC where the place is not free; err is set. */
int partition_make(const struct partition_gpu *gpu, const struct partition_profile *profile,
	unsigned start, unsigned *ret_instance, struct err *err) MUST_CHECK;

/* Gives the instance the one compute instance that has all of it. err is set. */
int partition_fill(const struct partition_gpu *gpu, unsigned instance, struct err *err) MUST_CHECK;

/* Removes an instance and its compute instances. -EBUSY with err set: a program uses it. Gone already: 0. */
int partition_remove(
	const struct partition_gpu *gpu, unsigned instance, struct err *err) MUST_CHECK;
