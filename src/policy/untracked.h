/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that take no turns, as the library does not track them: how much of a slice's elapsed time they have used.
 *
 * Beside a process without the library the driver divides the device's time, and what elapses between two
 * events of ours is partly that one's. The driver alone knows which part: by its samples of who kept
 * the device busy. They are coarse (H200, driver 580: 33, 66 or 50 where 50 is true, in steps of
 * a sixth), and each reading shows one. That others are at work is told at once; which batches they interrupt is seen
 * by how long these take (tenant/compute/span.c). For what that leaves out windows of 10 s and 15 samples are added up for as long
 * as they say the same, and it takes two of them at least for a charge to be lowered, or raised above what was taken for the slice's
 * own: as many as make their sum no accident of the samples. One is enough to raise it again to that, and so are some readings that
 * show nobody else.
 *
 * Three bounds keep a slice from talking itself free. The time taken off is at most what the
 * driver shows others to have used, so gaps between small kernels, which lower the slice's
 * figure as well, are no other process. It falls by at most UNTRACKED_STEP_PERMILLE a window. And
 * never below UNTRACKED_LEAST_PERMILLE: a slice beside three busy processes gets a quarter of the device; where
 * the figures say less, they are more likely wrong than the processes so many.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define UNTRACKED_ALL_PERMILLE	 1000u
#define UNTRACKED_LEAST_PERMILLE 250u
#define UNTRACKED_STEP_PERMILLE	 250u
#define UNTRACKED_MOST_PERMILLE	 4000u

#define UNTRACKED_WINDOW_NS	 UINT64_C(10000000000)
#define UNTRACKED_SAMPLES	 15u
#define UNTRACKED_GAP_NS	 UINT64_C(2500000000) /* between two readings: a later one begins anew */

/* The findings since the last reading. */
struct untracked_reading {
	uint64_t now_ns;
	uint64_t elapsed_ns; /* of the slice's work since any moment, by its events; only grows */
	uint32_t samples; /* of the slice's processes; 0: the driver shows none of them as busy */
	/* Of the time since the last reading, as the driver's samples say. */
	uint32_t slice_percent, device_percent;
	uint32_t
		others_percent; /* of processes that are not the slice's; 0: none is seen, or it cannot be told */
	bool has_turns; /* others are seen to take turns: the device's other time is theirs */
};

/* Windows in a row that say the same: less of what was charged is the slice's own, or more. */
struct untracked_evidence {
	uint64_t passed_ns, elapsed_ns, own_ns;
	uint32_t looks, windows;
	bool is_less;
	bool has_agreed; /* the last of them */
};

/* All zero is a first one. */
struct untracked {
	uint32_t permille;	/* of a charge that counts; 0: all */
	uint32_t last_permille; /* what the window before said; 0: nothing */
	uint64_t begun_ns, last_ns;
	uint64_t elapsed_ns;			      /* when the window began */
	uint64_t slice_percent_ns, device_percent_ns; /* percents times their time */
	uint32_t samples, seen; /* readings or samples, and those of them with a figure */
	uint32_t alone;		/* readings in a row that show nobody else */
	uint32_t others_recent, slice_recent; /* percents, of late */
	bool has_turns;			      /* some reading of the window had */
	struct untracked_evidence evidence;   /* of windows before this one */
};

/*
 * Of the time that the slice leaves them, what others have used of late, in percent; 0: none are at work. They want as
 * much of the rest, where the driver gives each process time slices of equal length.
 */
uint32_t untracked_contended_percent(const struct untracked *untracked);

/* Takes a reading; returns what of a charge counts from now on. */
uint32_t untracked_note(struct untracked *untracked, const struct untracked_reading *reading);
