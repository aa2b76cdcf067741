/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a stream's work breaks off: the program pauses or waits, metering begins or ends, and the
 * stream, its thread or its context goes. What of the open batch no event tells is charged as
 * estimated, and doubted. Under the lock of the device's meter.
 */
#pragma once

#include "tenant/compute/stream_state.h"

/* The stream was idle since its last work, or is another from now on: charges the open batch by its estimate. */
void stream_state_break(struct stream_state *s, uint64_t now_ns);

/* The same where work may never come to the stream again: its estimate is doubted here, too. */
void stream_state_give_up(struct stream_state *s, uint64_t now_ns);

/*
 * The open batch takes no more: what was waited for is charged as estimated, as an event would tell
 * of now, and the end of other work is told by one.
 */
void stream_state_end_open(struct stream_state *s, uint64_t now_ns);

/*
 * Work comes. If it comes after a pause (the driver is asked where in doubt), the open batch ends as above, and what
 * is doubted of its estimate is measured from now on: true then.
 */
bool stream_state_note_pause(struct stream_state *s, uint64_t now_ns);

/*
 * What is no work comes into the stream: where it has fewer batches than that which are not done, what it was given ends before
 * that, and what it is given next begins behind it. While slices take turns that waits for it at first, for so long at most.
 */
void stream_state_pass(struct stream_state *s, unsigned breaks_most, uint64_t patience_ns);

/*
 * The program is about to wait. If the stream is idle already, nothing tells when it became so: the
 * wait is as good as a pause. Else the open batch is closed where it is long, or must_measure:
 * others may end later than this stream. So it is where a call has not come back, whose work is
 * late for the batch then, and measured by itself.
 */
void stream_state_note_wait(struct stream_state *s, bool must_measure, uint64_t now_ns);

/*
 * A call that may have waited since since_ns has ended. It has where the stream is idle, which the
 * driver is asked where it can_be_asked by this thread; else the open batch stays estimated, and
 * doubted.
 */
void stream_state_note_waited(
	struct stream_state *s, bool can_be_asked, uint64_t since_ns, uint64_t now_ns);

/*
 * A wait for all of its context that began at since_ns has ended: so has what was given before to a
 * stream that is gone.
 */
void stream_state_note_all_waited(struct stream_state *s, uint64_t since_ns, uint64_t now_ns);

/*
 * Work comes that is metered, as what was given until since_ns was not. If that is under way, it is
 * a closed batch which began then and should have ended at until_ns.
 */
void stream_state_note_backlog(
	struct stream_state *s, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns);

/*
 * The same of all that is under way in the state's context, whose stream nothing is known of.
 * False: the driver does not tell.
 */
bool stream_state_hold_backlog(
	struct stream_state *s, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns);

/*
 * Its stream is told apart no more, and its work goes on. Is_known: the driver still knows the
 * stream, and an event there tells when that ends. Else one of the whole context does, also for
 * what comes late.
 */
void stream_state_lose_stream(struct stream_state *s, bool is_known, uint64_t now_ns);

/*
 * Its thread is gone, and its stream with that. Where the driver does not tell of the whole
 * context, its last work is charged as estimated, and doubted.
 */
void stream_state_lose_thread(struct stream_state *s, uint64_t now_ns);

/* Its context is gone, and its stream and events with that. Charges what was not collected by the clock. */
void stream_state_lose_context(struct stream_state *s, uint64_t now_ns);
