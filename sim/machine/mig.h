/* SPDX-License-Identifier: Apache-2.0 */
/* Cards that are cut into instances (MIG): the state is the machine's, and all processes see it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/machine.h"

#define MIG_MEMORY_SLICES    8
#define MIG_PROCESSOR_SLICES 7
#define MIG_INSTANCES_MAX    7 /* of a card */
#define MIG_COMPUTES_MAX     7 /* of an instance */

struct mig_profile {
	const char *family;
	unsigned int kind, id; /* NVML's two numbers */
	unsigned int slices, memory_slices;
	unsigned int starts; /* bit i: one may begin at slice i of memory */
	unsigned int memory_mib, sm_count;
	unsigned int copy_engines, decoders, media_engines;
	const char *name; /* "1g.5gb" */
};

/* The board's profile number i, or NULL after the last; a board without MIG has none. */
const struct mig_profile *mig_profile_at(const struct board *board, unsigned int i);
const struct mig_profile *mig_profile_of_kind(const struct board *board, unsigned int kind);
const struct mig_profile *mig_profile_of_id(const struct board *board, unsigned int id);

/* How many of the profile one card has room for, being empty. */
unsigned int mig_profile_most(const struct mig_profile *profile);

/* The processors that so many slices of an instance have. */
unsigned int mig_sm_count(const struct mig_profile *profile, unsigned int slices);

struct mig_compute {
	uint32_t is_used;
	uint32_t start, slices; /* of processors */
};

struct mig_instance {
	uint32_t is_used;
	uint32_t id;
	uint32_t profile_id;
	uint32_t start;				      /* in memory */
	struct mig_compute compute[MIG_COMPUTES_MAX]; /* its index is the id */
};

struct mig_card {
	uint32_t is_enabled, is_pending;
	struct mig_instance instance[MIG_INSTANCES_MAX];
};

enum {
	_MIG_E_SUCCESS = 0,
	MIG_E_BUSY,	/* processes use it, or it has parts */
	MIG_E_FULL,	/* no place is free, or not that one */
	MIG_E_DISABLED, /* the card is whole */
};

/* Changes the mode: 0, or MIG_E_BUSY, and then the mode is pending. */
int mig_set_mode(struct machine *machine, int device, bool is_enabled);

/* The card as it is. */
void mig_read(struct machine *machine, int device, struct mig_card *ret_card);

/* The place of an instance or a part with this id in the card, or -1. */
int mig_find(const struct mig_card *card, unsigned int id);

/* start < 0: the first that is free. ret_id: of the new instance. 0, MIG_E_FULL or MIG_E_DISABLED. */
int mig_create(struct machine *machine, int device, const struct mig_profile *profile, int start,
	unsigned int *ret_id);
/* 0, -ENOENT or MIG_E_BUSY. */
int mig_destroy(struct machine *machine, int device, unsigned int id);

/* A compute instance of so many slices. start < 0: the first that is free. 0, -ENOENT or MIG_E_FULL. */
int mig_create_compute(struct machine *machine, int device, unsigned int id, unsigned int slices,
	int start, unsigned int *ret_compute);
int mig_destroy_compute(struct machine *machine, int device, unsigned int id, unsigned int compute);

/* How many more of the profile there is room for, and of compute instances of so many slices. */
unsigned int mig_room(
	const struct board *board, const struct mig_card *card, const struct mig_profile *profile);
unsigned int mig_compute_room(
	const struct board *board, const struct mig_instance *instance, unsigned int slices);

/* The calling process uses this part of the card, and of its memory only the instance's. */
void mig_use(struct machine *machine, int device, unsigned int id, unsigned int compute);

/* The part that a slot uses, as layout_slot_device.part has it; 0: the whole card. */
static inline uint32_t mig_part(unsigned int id, unsigned int compute)
{
	return (id << 8 | compute) + 1;
}

/* "MIG-xxxxxxxx-...": a function of the card, the instance and the compute instance. */
void mig_uuid_text(const struct board *board, int device, unsigned int id, unsigned int compute,
	char ret_text[MACHINE_UUID_SIZE]);
void mig_uuid(const struct board *board, int device, unsigned int id, unsigned int compute,
	uint8_t ret_uuid[16]);
