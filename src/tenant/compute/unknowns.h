/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of which nobody knows how long it takes: one piece of the slice at a time, while other slices are about, and of one
 * process at a time, while the slice is alone and limited (policy/unknown.h). With the meter's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter;
struct stream_state;

struct unknowns {
	uint64_t word; /* the slice's, as this process put it there for its piece; 0: it has none */
	uint64_t
		passed_ns; /* when a piece last went beside one that did not end, as it had waited for too long */
	uint64_t ended_ns; /* when a piece was last seen to end */
};

/* A launch waits so long for the end of its piece: as long as a turn is kept for it. */
#define UNKNOWNS_WAIT_NS UINT64_C(25000000)

/* Alone it waits no longer than most such pieces take, so that other processes of the slice need not wait until it looks again. */
#define UNKNOWNS_LOOK_NS UINT64_C(300000)

/* And others wait so long for one of a process that does not look. */
#define UNKNOWNS_ALONE_NS UINT64_C(2000000)

/*
 * Since when such work is under way that the stream's next piece has to wait for: its own, or that of the process's other
 * streams, where it is too much at once. 0: none. What a call gives that has not come back counts, for as long as a piece may take.
 */
uint64_t unknowns_since_ns(
	const struct meter *meter, const struct stream_state *stream, uint64_t now_ns);

/*
 * Whether no such piece stands in the way of one more, or, where !is_unknown, of work that is known: only another process's does in the way of
 * that. Else *ret_wake_ns says when to look again.
 */
bool unknowns_may_begin(
	struct meter *meter, bool is_unknown, uint64_t now_ns, uint64_t *ret_wake_ns);

/* The slice's piece is this process's from now on. False where another one was faster. */
bool unknowns_begin(struct meter *meter, uint64_t now_ns);

/*
 * A piece that has waited for too long goes all the same, as what does not end may wait for it: one at a time. A piece of a stream waits as
 * long again after this: when the last one went so, or, where only other streams' pieces are in its way, ended.
 */
uint64_t unknowns_moved_ns(const struct meter *meter, const struct stream_state *stream);
void unknowns_pass(struct meter *meter, uint64_t now_ns);

/* A piece was seen to end. */
void unknowns_note_end(struct meter *meter, uint64_t now_ns);

/* Work was seen to end: where none of unknown length is left of this process, another may have its piece. */
void unknowns_end(struct meter *meter, uint64_t now_ns);
