/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the slice, for the hooks of NVML.
 *
 * Read from the slice's region as from outside, so that a process which only asks needs no slot. A
 * member is shown by its PID if it lives in the asker's PID namespace; in another namespace that
 * number would be another process, so it is left out. A member holds what the ledger says:
 * so the rows of a list add up to the memory that is shown as used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/nvml.h"
#include "region/layout.h"

struct member {
	unsigned pid;	     /* in this process's PID namespace */
	unsigned listed_pid; /* as the driver lists it; 0: not known */
	uint64_t held_bytes; /* of the device */
	unsigned gpu_instance, compute_instance;
	bool is_shown; /* for the caller; false at first */
};

struct members {
	unsigned count;
	struct member at[REGION_SLOTS]; /* 32 KiB: not on a stack (base/scratch.h) */
};

/* Whether what is not the slice's is to be kept from this process. */
bool members_matter(void);

/* The living members, and what they hold of the device; none where the region cannot be read. */
void members_read(nvmlDevice_t device, struct members *ret_members);

/* The member that the driver lists as this PID, or that has this PID here; NULL: none. */
struct member *members_find_listed(struct members *members, unsigned listed_pid);
struct member *members_find(struct members *members, unsigned pid);

/* The name of a member with this PID here, at most 16 letters; false where there is none. */
bool members_name(unsigned pid, char ret_name[17]);
