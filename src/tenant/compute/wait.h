/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of work that has to wait (policy/throttle.h). */
#pragma once

#include <stdint.h>

#include "policy/throttle.h"

struct stream_state;

/* Waits until then or until something has changed, without the meter's lock, which is held before and after. */
void wait_until(struct stream_state *s, enum throttle why, uint64_t wake_ns, uint64_t now_ns);

/* Waits while nothing may reach the device, likewise. */
void wait_while_suspended(struct stream_state *s);

/*
 * Work comes behind what is no work: while slices take turns it waits for that to end, without a turn, for s->patience_ns at most. Where it has not
 * ended then s->is_behind. Likewise.
 */
void wait_behind(struct stream_state *s);

/*
 * A piece was just given to the stream of which nobody knows how long it takes: waits until it is
 * done, or for UNKNOWNS_WAIT_NS, alone for UNKNOWNS_LOOK_NS, likewise. A process that would go on
 * with something else could not say that its piece is over. The stream has users.
 */
void wait_for_unknown(struct stream_state *s);
