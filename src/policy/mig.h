/* SPDX-License-Identifier: Apache-2.0 */
/* Which instance of a device in MIG mode a request gets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIG_PLACEMENTS 16 /* of one profile */

/* An interval of the device's memory slices. */
struct mig_place {
	uint8_t start, size;
};

struct mig_profile {
	char name[16]; /* "1g.10gb" */
	int64_t memory_mib, cores;
	unsigned slices;
	struct mig_place places[MIG_PLACEMENTS];
	size_t place_count;
};

/* The slices of a place, as bits; 0 where it is none: empty, or beyond the 32nd. */
uint32_t mig_slices(struct mig_place place);

struct mig_choice {
	const struct mig_profile *profile;
	struct mig_place place;
};

/* By memory, then by slices. */
bool mig_is_smaller(const struct mig_profile *a, const struct mig_profile *b);

/*
 * The smallest profile of at least so much memory that has a free place. Of its places
 * the lowest, but for profiles of one and three slices, which come in from the top, so that the larger ones keep their
 * room. taken: bits of slices that are in use.
 */
bool mig_choose(const struct mig_profile *profiles, size_t count, uint32_t taken,
	int64_t memory_mib, struct mig_choice *ret_choice);

/* The memory of the largest profile; 0: there is none. */
int64_t mig_most_mib(const struct mig_profile *profiles, size_t count);
