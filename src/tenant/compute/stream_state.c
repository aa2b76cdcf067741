/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a stream.
 *
 * Times of events are carried to the host's clock, so that spans of several streams and processes can be
 * compared: the start of a batch in an idle stream is known to some microseconds, and each event from there
 * on by its distance to the one before (the two clocks differ by 2 ppm, H200).
 */
#include "tenant/compute/stream_state.h"

#include "base/clock.h"
#include "base/fault.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"

/*
 * An event that is recorded in an idle stream happens about 4 us later, and a kernel that is given to an
 * idle device begins about 2 us after the call (H200, driver 580).
 */
#define EVENT_LATENCY_NS 4000
#define WORK_LATENCY_NS	 2000

/* Recording takes 2 us (H200), and some more where events have to be made. */
#define RECORD_MAX_NS 50000u

/*
 * Of pauses before which work was charged as estimated, one in so many is followed by work of which each piece is
 * measured, for so many times as long as the pause, which is as much as it may have hidden; a launch costs
 * 1.7 us more then (H200). Once that has shown work to be hidden, the next pauses are all doubted.
 */
#define DOUBTED		   8
#define DOUBTED_TIMES	   16
#define DOUBTED_WHEN_SHOWN 64

/* The clocks drift apart by 2 ppm, and the driver tells distances in a float. */
#define BASE_NS UINT64_C(10000000000)

/* A thread that captures in the global mode forbids questions to the driver, ours as well. */
static bool enter_relaxed(CUstreamCaptureMode *ret_mode)
{
	/* relaxed: see capture_is_on() */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	*ret_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	return cuda.cuThreadExchangeStreamCaptureMode &&
	       cuda.cuThreadExchangeStreamCaptureMode(ret_mode) == CUDA_SUCCESS;
}

static void leave_relaxed(bool is_exchanged, CUstreamCaptureMode mode)
{
	if (is_exchanged)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
}

static CUresult query_event(CUevent event)
{
	CUstreamCaptureMode mode;
	bool is_exchanged = enter_relaxed(&mode);
	CUresult r = cuda.cuEventQuery(event);

	leave_relaxed(is_exchanged, mode);
	return r;
}

bool stream_state_is_done(const struct stream_state *s)
{
	CUstreamCaptureMode mode;
	bool is_exchanged, is_idle;

	if (!s->has_stream)
		return true;
	is_exchanged = enter_relaxed(&mode);
	is_idle = cuda.cuStreamQuery(s->stream) == CUDA_SUCCESS;
	leave_relaxed(is_exchanged, mode);
	return is_idle;
}

/* Whether work given now follows what is there, with no pause between: asks the driver where in doubt. */
static bool is_continued(struct stream_state *s, uint64_t now_ns)
{
	if (now_ns <= s->last_ns + STREAM_PAUSE_NS)
		return true;
	if (!s->is_open && !s->pending && now_ns > s->drained_ns + STREAM_PAUSE_NS)
		return false;
	/* The expected end is an estimate. */
	return !stream_state_is_done(s);
}

/* The distance in ns; false where the driver does not tell. */
static bool distance(CUevent from, CUevent to, int64_t *ret_ns)
{
	float ms;

	if (cuda.cuEventElapsedTime(&ms, from, to) != CUDA_SUCCESS)
		return false;
	*ret_ns = (int64_t)((double)ms * 1e6);
	return true;
}

/*
 * A stream that is being captured, perhaps because it waits for an event of another one, would make our
 * event a part of the program's graph.
 */
static bool may_be_captured(const struct stream_state *s)
{
	CUstreamCaptureStatus status;

	/* relaxed: see capture_is_on() */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	return !cuda.cuStreamIsCapturing ||
	       cuda.cuStreamIsCapturing(s->stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Records an event, made if need be; false where the driver does not, or it would be captured. */
static bool record(struct stream_state *s, CUevent *event)
{
	CUstreamCaptureMode mode;
	bool is_exchanged, is_recorded;

	if (s->has_no_events || !s->has_stream || may_be_captured(s))
		return false;
	is_exchanged = enter_relaxed(&mode);
	is_recorded = (*event || cuda.cuEventCreate(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
		      cuda.cuEventRecord(*event, s->stream) == CUDA_SUCCESS;
	leave_relaxed(is_exchanged, mode);
	s->has_no_events = !is_recorded;
	return is_recorded;
}

static struct batch *before(struct stream_state *s, const struct batch *batch)
{
	size_t i = (size_t)(batch - s->batches);

	return &s->batches[(i + STREAM_BATCHES - 1) % STREAM_BATCHES];
}

void stream_state_open(struct stream_state *s, uint64_t now_ns)
{
	struct batch *b = &s->batches[(s->first + s->pending) % STREAM_BATCHES];
	struct timebase *base = s->timebase;

	/* A batch that is not chained was found to be so before, and the driver is not asked again. */
	if (s->is_chained && !is_continued(s, now_ns))
		s->is_chained = false;

	if (!s->is_chained && (!base->base || now_ns > base->made_ns + BASE_NS) &&
		record(s, &base->base)) {
		base->made_ns = now_ns;
		base->base_ns = now_ns + EVENT_LATENCY_NS;
	}
	b->has_start = !s->is_chained && record(s, &b->start);
	b->is_timed = b->has_start || s->is_chained;
	FAULT("stream: start recorded");
	b->start_ns = clock_now_ns();
	/* A thread that lost its processor in between does not know better than before. */
	if (b->start_ns > now_ns + RECORD_MAX_NS)
		b->start_ns = now_ns;
	b->given_ns = 0;
	b->expected_ns = 0;
	b->reserved_ns = 0;
	b->launches = 0;
	b->is_unknown = false;
	b->mix.kind_count = 0;
	if (!s->is_chained)
		s->drained_ns = now_ns;
	s->begun_ns = now_ns;
	s->batch = b;
	s->is_open = true;
}

static void charge(struct stream_state *s, const struct span *span, uint64_t now_ns)
{
	if (span_charge(s->meter, span, now_ns))
		s->doubted_pauses = DOUBTED_WHEN_SHOWN;
}

/* Charges what the host's clock tells, from the batch's beginning to when its work was done, or should be. */
static void charge_by_estimate(struct stream_state *s, struct batch *b, uint64_t now_ns)
{
	uint64_t start =
		s->is_chained && !b->has_start && !s->pending ? before(s, b)->end_ns : s->begun_ns;

	charge(s,
		&(struct span){.start_ns = start,
			.end_ns = s->drained_ns > start ? s->drained_ns : start,
			.reserved_ns = b->reserved_ns,
			.mix = b->mix},
		now_ns);
}

void stream_state_close(struct stream_state *s)
{
	struct batch *b = s->batch;

	if (!s->is_open || s->pending == STREAM_PENDING)
		return;
	b->due_ns = s->drained_ns;
	s->is_chained = record(s, &b->end);
	b->is_timed = b->is_timed && s->is_chained;
	s->is_open = false;
	s->pending++;
}

void stream_state_break(struct stream_state *s, uint64_t now_ns)
{
	if (s->drained_ns > now_ns)
		s->drained_ns = now_ns;
	if (s->is_open && s->batch->launches)
		charge_by_estimate(s, s->batch, now_ns);
	s->is_open = false;
	s->is_chained = false;
}

/*
 * The program's work comes after a pause. Its last work before that is charged as estimated, as nothing tells
 * when it ended, unless the program waited for it. So that estimates can be relied upon, the first
 * work after a pause is measured by itself, and after some pauses, which nobody can foresee, each piece is.
 */
static void doubt(struct stream_state *s, uint64_t now_ns)
{
	bool is_estimated = s->is_open && s->batch->launches && !s->is_waited_for;
	bool is_doubted = s->doubted_pauses || (is_estimated && hash_u64(now_ns) % DOUBTED == 0);

	s->doubted_pauses -= s->doubted_pauses != 0;
	s->single_count = is_doubted ? UINT32_MAX : 1;
	s->doubted_until_ns = now_ns + DOUBTED_TIMES * (now_ns - s->last_ns);
}

void stream_state_note_pause(struct stream_state *s, uint64_t now_ns)
{
	if (!is_continued(s, now_ns)) {
		doubt(s, now_ns);
		stream_state_break(s, now_ns);
	} else if (s->single_count && now_ns > s->doubted_until_ns) {
		s->single_count = 0;
	}
}

/* When the batch's start was, on the host's clock. */
static uint64_t place(struct stream_state *s, const struct batch *b)
{
	struct timebase *base = s->timebase;
	uint64_t soonest_ns = b->start_ns + EVENT_LATENCY_NS;
	int64_t since_base;

	/* Recorded before the base was made anew: less exact. */
	if (!base->base || !distance(base->base, b->start, &since_base) || since_base < 0)
		return soonest_ns;
	if (soonest_ns > base->base_ns + (uint64_t)since_base)
		base->base_ns = soonest_ns - (uint64_t)since_base;
	return base->base_ns + (uint64_t)since_base;
}

/* Where the batch began and how long it took, by its events; false where they do not tell. */
static bool measure(struct stream_state *s, struct batch *b, uint64_t now_ns, struct span *ret_span)
{
	struct batch *last = before(s, b);
	uint64_t start_ns;
	int64_t took_ns;

	if (!distance(b->has_start ? b->start : last->end, b->end, &took_ns) || took_ns < 0)
		return false;
	start_ns = b->has_start ? place(s, b) : last->end_ns;
	b->end_ns = start_ns + (uint64_t)took_ns;
	if (b->end_ns > now_ns) {
		start_ns -= b->end_ns - now_ns;
		b->end_ns = now_ns;
	}
	/* The start was there before the work. */
	if (b->has_start && b->given_ns + WORK_LATENCY_NS > start_ns)
		start_ns = b->given_ns + WORK_LATENCY_NS;
	ret_span->start_ns = start_ns < b->end_ns ? start_ns : b->end_ns;
	ret_span->end_ns = b->end_ns;
	ret_span->is_measured = true;
	return true;
}

/* The rest of the work is expected after what was just seen to end. */
static void anchor(struct stream_state *s, uint64_t end_ns)
{
	s->drained_ns = end_ns;
	for (unsigned i = 0; i < s->pending + s->is_open; i++)
		s->drained_ns += s->batches[(s->first + i) % STREAM_BATCHES].expected_ns;
}

/* Charges the oldest closed batch, if it is done. */
static bool collect_one(struct stream_state *s, uint64_t now_ns)
{
	struct batch *b = &s->batches[s->first];
	struct span span = {.start_ns = b->due_ns - b->expected_ns,
		.end_ns = b->due_ns,
		.is_first = b->has_start,
		.reserved_ns = b->reserved_ns,
		.mix = b->mix};
	CUresult r;

	/* Without events: done when it should be. */
	if (b->is_timed)
		r = query_event(b->end);
	else
		r = now_ns < b->due_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	if (r == CUDA_ERROR_NOT_READY)
		return false;
	if (r != CUDA_SUCCESS || !b->is_timed || !measure(s, b, now_ns, &span)) {
		b->end_ns = b->due_ns;
		s->is_chained = s->is_chained && s->pending > 1;
	}
	s->first = (s->first + 1) % STREAM_BATCHES;
	s->pending--;
	anchor(s, b->end_ns);
	charge(s, &span, now_ns);
	return true;
}

void stream_state_collect(struct stream_state *s, uint64_t now_ns)
{
	while (s->pending && collect_one(s, now_ns))
		;
}

uint64_t stream_state_unknown_since_ns(const struct stream_state *s)
{
	for (unsigned i = 0; i < s->pending; i++) {
		const struct batch *b = &s->batches[(s->first + i) % STREAM_BATCHES];

		if (b->is_unknown)
			return b->start_ns;
	}
	return 0;
}

void stream_state_free(struct stream_state *s)
{
	for (unsigned i = 0; i < STREAM_BATCHES; i++) {
		if (s->batches[i].start)
			cuda.cuEventDestroy_v2(s->batches[i].start);
		if (s->batches[i].end)
			cuda.cuEventDestroy_v2(s->batches[i].end);
	}
	*s = (struct stream_state){.is_used = false, .use = s->use + 1};
}

void stream_state_lose_context(struct stream_state *s)
{
	for (unsigned i = 0; i < STREAM_BATCHES; i++)
		s->batches[i].start = s->batches[i].end = NULL;
	s->is_open = false;
	s->is_chained = false;
	s->pending = 0;
	s->has_stream = false;
	s->use++;
}
