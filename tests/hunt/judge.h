/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated machine knows that the slice's processes hold, against what the books say, and against the
 * quota; at any instant. A verdict is a line on stdout, and ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The slice is the one of $VGPU_SIM_TAG. Its region has to be there. */
void judge_open(const char *region, uint64_t quota_bytes);

/*
 * Code and small blocks share chunks. One that is left by what it was charged for, and not by the code in it, is found
 * and charged a second later, and one that both were charged for is given back then: so many chunks may be held and not
 * charged meanwhile, or charged and not held.
 */
void judge_allow_chunks(unsigned count);

/* So many bytes of which nobody can know before a call under way may be held and not charged until it is over. */
void judge_allow_hidden(int64_t bytes);

/* So much may stay charged until the primary context ends, for a heap that a kernel in an executable graph may bring. */
void judge_allow_heap(uint64_t bytes);

/* What is going on, for the verdict. */
void judge_note(unsigned number, const char *what);

/* The driver holds no more than the books say, and never held more than the quota. */
void judge_now(const char *place);

/* When nobody is at work: whether both say the same, with the chunks or without; and that they do, and nothing, where nothing may be left. */
bool judge_is_exact(bool may_differ_by_chunks);
void judge_rest(bool is_all_given_back);

/* Says a verdict of a kind, one word, and why, and ends the process with 1. */
void judge_fail(const char *kind, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
