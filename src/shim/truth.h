/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own figure beside the books.
 *
 * A driver also takes device memory that no call announces or that is not charged yet: code of
 * kernels, streams, its own workspaces. NVML's figure for this process shows it. What is more there
 * than in the books is charged as "other", so that what the process allocates and what the driver
 * takes for it stay within the quota together.
 */
#pragma once

#include "shim/state.h"

/* One question to NVML takes 0.34 ms (H200): once a second is 0.034 % of a processor. */
#define TRUTH_CHECK_NS 1000000000u

/*
 * Makes charges compare from now on, at most every TRUTH_CHECK_NS, and before anything is refused.
 * Where NVML has no figure for this process the books stand alone.
 */
void truth_start(void);

/* A context is gone, and with it what the driver took for it: the next check finds the rest. */
void truth_forget(struct device *device);

/* For a child of fork(). */
void truth_forget_parent(void);
