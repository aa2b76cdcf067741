/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of which nobody knows how long it takes: one piece of the slice at a time, while other slices are about
 * (policy/unknown.h). With the meter's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter;
struct stream_state;

/* Whether no other piece stands in the way of one; else *ret_wake_ns says when to look again. */
bool unknowns_may_begin(struct meter *meter, uint64_t now_ns, uint64_t *ret_wake_ns);

/* The slice's piece is this process's from now on. False where another one was faster. */
bool unknowns_begin(struct meter *meter, uint64_t now_ns);

/* Work was seen to end: where none of unknown length is left of this process, another may have its piece. */
void unknowns_end(struct meter *meter);

/*
 * Such a piece was just given to the stream: waits until it is done, or for 25 ms, without the lock. A process that would go
 * on with something else could not say that its piece is over. The stream has users.
 */
void unknowns_wait(struct stream_state *s);
