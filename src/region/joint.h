/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joints: device memory that several processes of a slice may hold, charged once.
 *
 * Memory becomes a joint when it is shared for the first time: its charge moves from its process's
 * slot to the joint. Each process that holds it (who made it, and whoever opened it) is a holder, once,
 * however often it opened it. With the last holder the charge goes back, whichever that is and however
 * it ends; and where descriptors keep the memory, too, not before the last of these is closed.
 *
 * One process at a time changes the joints (a lock that dies with its holder), for 50 ms at most;
 * where that is not to be had, what was to be given back stays charged until somebody sweeps, so the
 * slice's total is too high at worst.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/region.h"

enum {
	_JOINT_E_SUCCESS = 0,
	JOINT_E_FULL,	/* no place is left */
	JOINT_E_ABSENT, /* no joint has this key */
};

/* What is to become a joint; fd is a marked descriptor of it, or -1 where none can keep the memory. */
struct joint_memory {
	unsigned slot, device;
	uint64_t units; /* that the slot holds now */
	uint64_t key;	/* not 0 */
	uint64_t mark;	/* 0 where fd is -1 */
	int fd;
};

/* Makes a joint, whose holder is the slot. JOINT_E_FULL, or -errno; then nothing was changed. */
int joint_make(const struct region *region, const struct joint_memory *memory,
	unsigned *ret_joint) MUST_CHECK;

/* Adds more units that the slot holds to a joint that it holds. */
int joint_grow(
	const struct region *region, unsigned slot, unsigned joint, uint64_t units) MUST_CHECK;

/* Descriptors keep the joint from now on, too. */
int joint_set_mark(const struct region *region, unsigned joint, uint64_t mark, int fd) MUST_CHECK;

/* A handle with this key opens the joint from now on, and no other joint. */
int joint_set_key(const struct region *region, unsigned joint, uint64_t key) MUST_CHECK;

/* Makes the slot a holder of the joint with this key or mark. JOINT_E_ABSENT, or -errno. */
int joint_hold(
	const struct region *region, unsigned slot, uint64_t key, unsigned *ret_joint) MUST_CHECK;

/* The slot holds the joint no more; the last one gives its charge back. */
void joint_let_go(const struct region *region, unsigned slot, unsigned joint);

/* Whoever made the memory has let it go, so its key opens nothing any more. */
void joint_retire(const struct region *region, unsigned joint);

/* Gives back what nobody holds any more, in the name of the slot. Returns how many joints that ended. */
unsigned joint_sweep(const struct region *region, unsigned slot);

/*
 * Whether a descriptor may keep the joint's memory still, asked by the path under which the region's
 * processes know the file; where that cannot be told, it does.
 */
bool joint_is_kept_by_files(const struct region_joint *joint, const char *joint_path);

/* A slot is given up: it holds nothing any more. The caller owns the slot by its byte lock. */
void joint_forget_slot(struct region_file *file, unsigned slot);
