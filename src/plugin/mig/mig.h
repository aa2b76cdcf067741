/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instances of GPUs (MIG) that pods have reserved: they are made exactly as reserved, used again where a pod was given
 * them, and removed when no pod claims them. What there is, is asked of NVML each time, and what there should be is in
 * the pods' annotations: a plugin that ends between any two steps leaves what the next one finishes.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/partition.h"
#include "kube/instances.h"

/*
 * All instances of one container, or none: those made by this call are removed where one cannot be had. One that was given
 * before and is there is left as it is; one that is gone is made again. They are given then. err is set: -ENODEV, -EINVAL
 * (no such profile or place), -EBUSY (another instance is there, which is left as it is), -EIO.
 */
int mig_give(const struct nvml_driver *nvml, const struct nvml_node *node, struct instance *wanted,
	unsigned count, struct err *err) MUST_CHECK;

/* Whether the instance that was given is what there is now; other than that, it is not adopted. */
bool mig_is_there(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct instance *instance);

/*
 * Removes the instances of a GPU that nobody claims. The claims are those of every pod that is not over, also of those
 * that are terminating. What a program uses is left for the next time, and stops nothing else. Returns how many are left
 * that should not be; *ret_removed counts the others.
 */
unsigned mig_sweep(const struct nvml_driver *nvml, const struct nvml_node *node,
	const char *gpu_uuid, const struct instance *claims, size_t count, unsigned *ret_removed);
