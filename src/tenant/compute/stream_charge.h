/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream's batches are charged: a closed one when it is done, by its events, or, where these do not tell, by the clock; an open
 * one as estimated. Under the lock of the device's meter.
 */
#pragma once

#include "tenant/compute/stream_state.h"

/* Charges a span of the stream's work; what is likely to be hidden in it is doubted. */
void stream_charge_span(struct stream_state *s, const struct span *span, uint64_t now_ns);

/* Charges the closed batches that are done. */
void stream_state_collect(struct stream_state *s, uint64_t now_ns);

/*
 * Charges the open batch without an event: from its beginning, or what of it is charged already, to when its work was done,
 * or should be. If the stream waited before it, the work came later by that.
 */
void stream_charge_by_estimate(struct stream_state *s, uint64_t now_ns);
