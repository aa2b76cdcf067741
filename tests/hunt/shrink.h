/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a failing program short: of a list of steps, a part that fails still, and of which no single
 * step can be left out. What a step is, the caller knows; here it is its number in the whole list.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the program of these steps alone fails. The numbers ascend. A program whose failure is a matter of
 * luck is run several times by the caller.
 */
typedef bool shrink_fails_fn(const unsigned *steps, unsigned count, void *argument);

/*
 * Of the steps 0 to count - 1, whose program fails, leaves in ret_steps (room for count) a part that
 * fails, too, and returns how many they are. After deadline_ns (CLOCK_MONOTONIC) it stops with the best so far.
 */
unsigned shrink(unsigned count, shrink_fails_fn *fails, void *argument, uint64_t deadline_ns,
	unsigned *ret_steps);
