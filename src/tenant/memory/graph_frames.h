/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deepest frames of executable graphs' kernels.
 *
 * A change of one node makes all kernels of the executable graph ready again, in whatever context each is. Where the stack's limit was
 * lowered since, there is room to be made for their frames once more (local.h).
 */
#pragma once

#include <stdatomic.h>

#include "base/bits.h"
#include "tenant/memory/graph_survey.h"

/* Before kernels with such frames come into an executable graph in the current context. False without memory. */
bool graph_frames_come(uint64_t frame_bytes) MUST_CHECK;

/* The executable graph was made, with what the survey found; others may be put into it; it is about to be destroyed. */
void graph_frames_keep(CUgraphExec exec, const struct graph_survey *survey);
void graph_frames_raise(CUgraphExec exec, const struct graph_survey *survey);
void graph_frames_forget(CUgraphExec exec);

/* Adds the frames that all kernels of the executable graph may need to the survey's places. CUDA_ERROR_OUT_OF_MEMORY: they are too many. */
CUresult graph_frames_add(CUgraphExec exec, struct graph_survey *survey) MUST_CHECK;

/*
 * A stack's limit is about to be lowered. Whether a driver makes that room again when an executable graph is launched as it was is not known,
 * so from then on launches reserve it, too.
 */
extern _Atomic bool graph_frames_was_lowered;
void graph_frames_lower(void);
static inline bool graph_frames_are_lowered(void)
{
	/* relaxed: as a launch that has been found to take nothing (marks.h) */
	return UNLIKELY(atomic_load_explicit(&graph_frames_was_lowered, memory_order_relaxed));
}

void graph_frames_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void graph_frames_reset_after_fork(void);
