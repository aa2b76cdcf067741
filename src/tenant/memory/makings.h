/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that take what was found in a graph a moment before, beside those that change it: never both at once.
 *
 * A call that makes an executable graph, or puts all of a graph into one, looks through the graph first. A call that changes or ends a graph, or takes
 * code away, may give a handle that was seen there to something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

#define MAKINGS_WAIT_NS UINT64_C(60000000000) /* as for a library that is compiled meanwhile */

/*
 * From before a graph is looked through until what is made of it is kept, or destroyed again. Meanwhile no executable graph is destroyed, and
 * none is launched that is not known, as the driver gives a handle out again. false: another thread is at such a call for
 * MAKINGS_WAIT_NS, and the driver must not be asked.
 */
bool makings_begin(void) MUST_CHECK;
void makings_end(void);

/* Around a call that must not be beside these. false: it cannot begin for MAKINGS_WAIT_NS. */
bool makings_stranger_begin(void) MUST_CHECK;
void makings_stranger_end(void);

/* The same for one that changes a graph or ends it, or takes code away: it lets those that wait to make something go first. */
bool makings_change_begin(void) MUST_CHECK;
void makings_change_end(void);
/* false: one is being made now. Never waits. */
bool makings_try_change_begin(void) MUST_CHECK;

/* For a child of fork(). */
void makings_reset_after_fork(void);
