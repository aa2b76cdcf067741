/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at the places of base/fault.h: a signal to ourselves, or nothing. */
#pragma once

#include <stdbool.h>

/* Every place there is; a place that is not among them ends the test. */
extern const char *const fault_places[];
extern const unsigned fault_place_count;

/* From now on the process sends itself the signal when it comes to the place for the n-th time. */
void fault_arm(unsigned place, unsigned n, int signal);

/* How often this process has come to the place since it was armed. */
unsigned fault_count(void);

/* Whether the place is one of a reaper's. */
bool fault_is_reapers(unsigned place);
