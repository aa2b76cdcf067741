/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for streams. */
#include "tenant/compute/streams_wait.h"

#include "tenant/compute/meters.h"
#include "tenant/compute/streams_find.h"
#include "tenant/driver/capture.h"

struct stream_state *streams_recent_if_done(const struct meter *m)
{
	struct stream_state *s = streams_recent(m);

	return s && s->is_open && stream_state_is_done(s) ? s : NULL;
}

static void wait_begins_in(struct meter *m, CUcontext context, uint64_t now_ns)
{
	bool is_busy = false;

	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (!s->is_open || !streams_is_in(s, context))
			continue;
		/* The wait may end much later than what lies in another thread's stream. */
		if (stream_state_can_be_asked(s)) {
			if (!capture_is_on(s->stream))
				stream_state_note_wait(s, true, now_ns);
			continue;
		}
		streams_end_in_context(s, &is_busy, now_ns);
		s->is_awaited = stream_state_is_untold(s) && !stream_state_has_calls(s);
	}
}

/* What is waited for may end later than the streams' work: a copy that is in no batch, another stream, a host function. */
void streams_wait_begins(struct meter *m, CUcontext context, uint64_t now_ns)
{
	struct stream_state *s = streams_recent(m);

	if (context)
		wait_begins_in(m, context, now_ns);
	else if (s && !capture_is_on(s->stream))
		stream_state_note_wait(s, true, now_ns);
}

void streams_waited(struct meter *m, CUcontext context, uint64_t since_ns, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (s->context != context)
			continue;
		stream_state_note_waited(s, stream_state_can_be_asked(s), since_ns, now_ns);
		stream_state_note_all_waited(s, since_ns, now_ns);
	}
}
