/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instances of GPUs (MIG) that pods have reserved: they are made exactly as reserved, used again where they are there
 * already, and removed when no pod claims them. What there is, is asked of NVML each time, and what there should be is in
 * the pods' annotations: a plugin that ends between any two steps leaves what the next one finishes.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/partition.h"

/* What a pod has reserved: a place in a GPU. */
struct mig_claim {
	const char *gpu_uuid, *profile;
	unsigned start, size;
};

/* What a container is given for it. */
struct mig_part {
	char uuid[UUID_TEXT_BYTES]; /* "MIG-..." */
	unsigned instance, compute;
};

/*
 * All parts of one container, or none: those made by this call are removed where one cannot be had. Twice is the same as
 * once. ret_parts has a place for each. err is set: -ENODEV, -EINVAL (no such profile or place), -EBUSY (another instance
 * is in the way; it is left as it is), -EIO.
 */
int mig_give(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct mig_claim *claims, unsigned count, struct mig_part *ret_parts,
	struct err *err) MUST_CHECK;

/* Whether the part that a pod was given is what it has now; other than that, it is not adopted. */
bool mig_is_given(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct mig_claim *claim, const struct mig_part *part);

/*
 * Removes the instances of a GPU that nobody claims. The claims are those of every pod that is not over, also of those
 * that are terminating. What a program uses is left for the next time, and stops nothing else. Returns how many are left
 * that should not be.
 */
unsigned mig_sweep(const struct nvml_driver *nvml, const struct nvml_node *node,
	const char *gpu_uuid, const struct mig_claim *claims, unsigned count);
