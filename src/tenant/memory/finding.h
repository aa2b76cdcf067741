/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML shows for this process beyond its books: one question, and the bounds within which its answer lies. */
#pragma once

#include "tenant/memory/charge.h"

/* Looks that other threads may spoil before the careful side is taken. */
#define FINDING_LOOKS 4

/* Of a device. */
struct finding_misses {
	_Atomic unsigned in_a_row; /* questions that NVML had no figure for */
	unsigned blind_times;	   /* that it had none for so long that the books stood alone */
	_Atomic uint64_t next_retry_ns;
};

/* Whether the books stand alone, as NVML has had no figure for too long. */
bool finding_is_blind(const struct finding_misses *misses);

/*
 * What NVML shows beyond the books lies between the two, which differ where memory of other slices is open,
 * and where another thread charged meanwhile: what it took and freed again between two equal readings of
 * the books may be in NVML's figure. The books run ahead of the driver, so what the figure has beyond the
 * most that they said is never too much; both are exact where no other call of this process was under way. Where some
 * were, it may be as much as if nothing of theirs had come yet, and all that they give back had gone.
 */
struct finding {
	uint64_t least_bytes, most_bytes;
	uint64_t worst_bytes;	/* whatever is under way; UINT64_MAX: not known */
	uint64_t charged_bytes; /* as unattributed, when it was looked */
	int64_t beyond_bytes; /* NVML's figure less what the books know of that: below 0 where they run ahead */
	uint64_t traffic;
	bool is_exact;
};

/*
 * Looks. What this process opened is shown for it from the instant in which its last other holder lets it go, or dies, and
 * the books follow. So while there is such memory, more is believed when the dead have been looked for, and when it is
 * still there a moment later. False where nothing can be told now.
 */
bool finding_look(struct finding_misses *misses, struct device *d,
	const _Atomic uint64_t *unattributed_bytes, const struct charge *reserved,
	struct finding *ret_found);

/* The unattributed part as it is thought to be, within what it can be. */
uint64_t finding_within(const struct finding *found, uint64_t unattributed_bytes);

/* What is in the books and not always in NVML's figure: managed memory, and what is another's. */
uint64_t finding_hidden_bytes(const struct device *d);

/* So long that a free under way can be told from memory that is gone. */
void finding_pause(void);
