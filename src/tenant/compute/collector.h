/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks after the work of this process while no thread of the program does. Work is charged by the
 * calls of the program: one that gives work and makes no more of them would never be charged for
 * it.
 */
#pragma once

#include <stdbool.h>

/*
 * Charges what is done, and what runs, on each device to which the program gave no work since the
 * last look. Returns whether work is under way that is not charged. For the library's own thread
 * (own_thread.h).
 */
bool collector_look(void);
