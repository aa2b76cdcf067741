/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much is charged of work that was left under way, where nobody knows when it ended: its
 * process has ended, or lives and does not look after it (region/busy.h), and the device may have
 * been idle for long before anybody looks. So there is a bound, and each time that it was met the
 * next one is twice as high: processes that are killed with longer work under way, one after the
 * other, have no more by that.
 *
 * A word of the slice says how often it was met, and when last. 0: never.
 */
#pragma once

#include <stdint.h>

/* The bound of the first. */
#define LEFT_NS UINT64_C(10000000000)

/*
 * The most that is charged of work that began, or was last looked after, at since_ns. Where that is
 * before the bound was last met, it is the bound of then.
 */
uint64_t left_most_ns(uint64_t word, uint64_t since_ns, uint64_t now_ns);

/* The word after the bound of such work was met. */
uint64_t left_note(uint64_t word, uint64_t since_ns, uint64_t now_ns);
