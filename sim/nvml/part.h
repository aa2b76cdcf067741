/* SPDX-License-Identifier: Apache-2.0 */
/* A device as a caller means it: a card, or a part of one that is a device by itself (MIG). */
#pragma once

#include "sim/machine/mig.h"
#include "sim/nvml/node.h"

struct part {
	int index; /* of the card */
	bool is_whole;
	unsigned int id, compute; /* of the instances */
	unsigned int slices;	  /* of processors */
	const struct mig_profile *profile;
};

/* The start of a function: also INVALID_ARGUMENT, GPU_IS_LOST, or NOT_FOUND where the part is gone. */
nvmlReturn_t part_enter(enum node_call call, nvmlDevice_t device, struct part *ret_part);

/* Part number i of the card, of those that this process sees; its handle is NULL after the last. */
nvmlDevice_t part_at(int index, unsigned int i, struct part *ret_part);

/* The same of its instances, whose handles are of this library alone. */
nvmlGpuInstance_t part_instance_handle(int index, int place);
bool part_find_instance(nvmlGpuInstance_t handle, int *ret_index, int *ret_place);
nvmlComputeInstance_t part_compute_handle(int index, int place, unsigned int compute);
bool part_find_compute(
	nvmlComputeInstance_t handle, int *ret_index, int *ret_place, unsigned int *ret_compute);

void part_uuid_text(const struct part *part, char ret_text[MACHINE_UUID_SIZE]);

/* The memory of its instance. */
static inline uint64_t part_total_bytes(const struct part *part)
{
	return (uint64_t)part->profile->memory_mib << 20;
}
