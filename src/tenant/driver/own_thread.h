/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own thread of a process. It is there while work is under way that is not charged,
 * and for a second more (docs/decisions/0043-one-thread.md). Where no other thread of the process is left it ends with its next look.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"

/*
 * What the thread calls every 60 ms, never twice at once. Returns whether there is work to look
 * after.
 */
typedef bool own_thread_look_fn(void);

/* Before there is work. Context: without a lock. */
void own_thread_set(own_thread_look_fn *look);

/*
 * Work is under way that is not charged yet: own_thread_begin() is to come. Context: with the lock
 * under which the look finds out whether there is some. Costs one load where the thread is there.
 */
void own_thread_note_work(void);

/*
 * Begins the thread where work was noted and there is none. Where none can be begun it is tried
 * again with the first work after 60 ms. Context: without a lock.
 */
void own_thread_begin_slowly(void);
bool own_thread_is_wanted(void);
static inline void own_thread_begin(void)
{
	if (UNLIKELY(own_thread_is_wanted()))
		own_thread_begin_slowly();
}

/*
 * From one to the other it does not look: nobody may ask the driver for something in a context
 * while that is ended. The first waits 5 ms at most for a look that is under way.
 */
void own_thread_hold(void);
void own_thread_let_go(void);

/*
 * The process is about to end: it looks no more. Waits 5 ms at most for a look that is under way.
 */
void own_thread_end(void);

/* For a child of fork(), which has no such thread. */
void own_thread_reset_after_fork(void);
