/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of sim/machine know of an attachment, and the lock of the shared file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/machine/layout.h"

struct machine {
	struct layout *layout;
	int slot;			/* of this process, or -1 */
	void *live_page;		/* the mapping that keeps the slot's file lock, or NULL */
	uint64_t without_lock_until_ns; /* see schedule.c */
	bool has_turn_lock[MACHINE_DEVICES_MAX]; /* between schedule_begin() and schedule_end() */
	dev_t file_dev;
	ino_t file_ino;
	char path[4096];
};

/*
 * The lock of the shared file. It survives the death of its holder at any instant: all that it
 * guards is committed by single words, so there is nothing to repair.
 */
void attach_lock(struct machine *machine);
/* The same where nobody has it now. */
bool attach_try_lock(struct machine *machine);
void attach_unlock(struct machine *machine);

/* Frees the slots of dead processes. Under the lock. Returns how many. */
int attach_reap(struct machine *machine);

/* A fresh descriptor of the attached file, or -errno (-ESTALE: the path now names another file). */
int attach_reopen(const struct machine *machine);

/* Whether what the slot holds is taken from the devices. Under the lock. */
bool attach_is_counted(const struct layout_slot *slot);

/* What all counted slots hold of a device. Under the lock. */
uint64_t attach_sum_used(const struct layout *layout, int device);

/* Whether the process may take more, by its own limit alone. Under the lock. */
bool attach_is_within_limit(const struct machine *machine, int device, uint64_t more_bytes);

/* Brings the peaks of a slot's tag up to date after a growth. Under the lock. */
void attach_note_peak(struct machine *machine, int slot, int device);

/* Sums over one slot and device. Under the lock, or for a look that may be a moment old. */
uint64_t attach_slot_total(const struct layout_slot_device *device);
uint64_t attach_slot_held(const struct layout_slot_device *device);

/* Kept memory of a device, under the lock: the slot that it belongs to, -1 for nobody's. */
int kept_bearer(const struct layout *layout, const struct layout_kept *kept);
/* What a slot bears, by kind (added to `kinds`, may be NULL); *ret_shown as NVML shows it. */
uint64_t kept_borne(const struct layout *layout, int slot, int device, uint64_t *kinds,
	uint64_t *ret_shown_bytes);
/* What nobody bears: of one tag, or (UINT32_MAX) of all. */
uint64_t kept_orphaned(const struct layout *layout, uint32_t tag, int device);
/* The slot holds nothing any more. */
void kept_forget_slot(struct layout *layout, unsigned int slot);
/* Frees what nobody keeps, by a descriptor of the file. */
void kept_sweep(struct layout *layout, int fd);
