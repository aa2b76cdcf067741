/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiet: calls of the program that begin wait for one thread that looks at what the process holds, so that nothing comes in
 * its way. They wait 20 ms at most, and hold nothing of ours meanwhile (hooks/hook.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

#define QUIET_NS UINT64_C(20000000)

/* Calls that begin wait for this thread from now on. False where they do for another one. */
bool quiet_begin(uint64_t now_ns);
/* Nothing where they do not for this one. */
void quiet_end(void);

/* What a call that begins does, when one is awaited (driver/call_end.h). */
void quiet_wait(void);

/*
 * Around a wait until what the driver has given the caller, whose call is under way, can be measured; quiet_wait_for_calls() waits for all
 * other calls under way but those that wait so themselves, and holds back those that begin, one part in four of the time.
 */
void quiet_measure_begin(void);
void quiet_measure_end(void);
void quiet_wait_for_calls(uint64_t until_ns);
/* Whether none but these is under way. */
bool quiet_is_reached(void);

/* For a child of fork(). */
void quiet_reset_after_fork(void);
