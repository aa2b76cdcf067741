/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A track.
 *
 * Times of events are carried to the host's clock, so that spans of several streams and processes can be
 * compared: the start of a batch in an idle stream is known to some microseconds, and each event from there
 * on by its distance to the one before (the two clocks differ by 2 ppm, H200).
 */
#include "tenant/compute/track.h"

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

bool track_is_done(const struct track *track)
{
	CUstreamCaptureMode mode;
	bool is_exchanged, is_idle;

	if (!track->has_stream)
		return true;
	is_exchanged = enter_relaxed(&mode);
	is_idle = cuda.cuStreamQuery(track->stream) == CUDA_SUCCESS;
	leave_relaxed(is_exchanged, mode);
	return is_idle;
}

bool track_is_continued(struct track *track, uint64_t now_ns)
{
	if (now_ns <= track->last_ns + TRACK_PAUSE_NS)
		return true;
	if (!track->is_open && !track->pending && now_ns > track->drained_ns + TRACK_PAUSE_NS)
		return false;
	/* What was expected is an estimate. */
	return !track_is_done(track);
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
static bool may_be_captured(const struct track *track)
{
	CUstreamCaptureStatus status;

	/* relaxed: see capture_is_on() */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	return !cuda.cuStreamIsCapturing ||
	       cuda.cuStreamIsCapturing(track->stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Records an event, made if need be; false where the driver does not, or it would be captured. */
static bool record(struct track *track, CUevent *event)
{
	CUstreamCaptureMode mode;
	bool is_exchanged, is_recorded;

	if (track->has_no_events || !track->has_stream || may_be_captured(track))
		return false;
	is_exchanged = enter_relaxed(&mode);
	is_recorded = (*event || cuda.cuEventCreate(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
		      cuda.cuEventRecord(*event, track->stream) == CUDA_SUCCESS;
	leave_relaxed(is_exchanged, mode);
	track->has_no_events = !is_recorded;
	return is_recorded;
}

static struct batch *before(struct track *track, const struct batch *batch)
{
	size_t i = (size_t)(batch - track->batches);

	return &track->batches[(i + TRACK_BATCHES - 1) % TRACK_BATCHES];
}

void track_open(struct track *track, uint64_t now_ns)
{
	struct batch *b = track_batch(track);
	struct timebase *base = track->timebase;

	if (!track->is_chained && (!base->base || now_ns > base->made_ns + BASE_NS) &&
		record(track, &base->base)) {
		base->made_ns = now_ns;
		base->base_ns = now_ns + EVENT_LATENCY_NS;
	}
	b->has_start = !track->is_chained && record(track, &b->start);
	b->is_timed = b->has_start || track->is_chained;
	FAULT("track: start recorded");
	b->start_ns = clock_now_ns();
	/* Who lost its processor in between does not know better than before. */
	if (b->start_ns > now_ns + RECORD_MAX_NS)
		b->start_ns = now_ns;
	b->given_ns = 0;
	b->expected_ns = 0;
	b->reserved_ns = 0;
	b->launches = 0;
	b->is_unknown = false;
	b->mix.kind_count = 0;
	if (!track->is_chained)
		track->drained_ns = now_ns;
	track->begun_ns = now_ns;
	track->is_open = true;
}

/* A span that the host's clock tells, from the batch's beginning to when its work was done, or should be. */
static void span_by_clock(struct track *track, struct batch *b, struct track_span *ret_span)
{
	uint64_t start = track->is_chained && !b->has_start && !track->pending
				 ? before(track, b)->end_ns
				 : track->begun_ns;

	*ret_span = (struct track_span){.start_ns = start,
		.end_ns = track->drained_ns > start ? track->drained_ns : start,
		.reserved_ns = b->reserved_ns,
		.mix = b->mix};
}

void track_close(struct track *track)
{
	struct batch *b = track_batch(track);

	b->due_ns = track->drained_ns;
	track->is_chained = record(track, &b->end);
	b->is_timed = b->is_timed && track->is_chained;
	track->is_open = false;
	track->pending++;
}

bool track_break(struct track *track, uint64_t now_ns, struct track_span *ret_span)
{
	struct batch *b = track_batch(track);
	bool has_work = track->is_open && b->launches;

	if (track->drained_ns > now_ns)
		track->drained_ns = now_ns;
	if (has_work)
		span_by_clock(track, b, ret_span);
	track->is_open = false;
	track->is_chained = false;
	return has_work;
}

/* When the batch's start was, on the host's clock. */
static uint64_t place(struct track *track, const struct batch *b)
{
	struct timebase *base = track->timebase;
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
static bool measure(
	struct track *track, struct batch *b, uint64_t now_ns, struct track_span *ret_span)
{
	struct batch *last = before(track, b);
	uint64_t start_ns;
	int64_t took_ns;

	if (!distance(b->has_start ? b->start : last->end, b->end, &took_ns) || took_ns < 0)
		return false;
	start_ns = b->has_start ? place(track, b) : last->end_ns;
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

/* What is still to be done is expected after what was just seen to end. */
static void anchor(struct track *track, uint64_t end_ns)
{
	track->drained_ns = end_ns;
	for (unsigned i = 0; i < track->pending + track->is_open; i++)
		track->drained_ns += track->batches[(track->first + i) % TRACK_BATCHES].expected_ns;
}

bool track_collect(struct track *track, uint64_t now_ns, struct track_span *ret_span)
{
	struct batch *b = &track->batches[track->first];
	CUresult r;

	if (!track->pending)
		return false;
	/* Without events: done when it should be. */
	if (b->is_timed)
		r = query_event(b->end);
	else
		r = now_ns < b->due_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	if (r == CUDA_ERROR_NOT_READY)
		return false;
	*ret_span = (struct track_span){.start_ns = b->due_ns - b->expected_ns,
		.end_ns = b->due_ns,
		.is_first = b->has_start,
		.reserved_ns = b->reserved_ns,
		.mix = b->mix};
	if (r != CUDA_SUCCESS || !b->is_timed || !measure(track, b, now_ns, ret_span)) {
		b->end_ns = b->due_ns;
		track->is_chained = track->is_chained && track->pending > 1;
	}
	track->first = (track->first + 1) % TRACK_BATCHES;
	track->pending--;
	anchor(track, b->end_ns);
	return true;
}

void track_free(struct track *track)
{
	for (unsigned i = 0; i < TRACK_BATCHES; i++) {
		if (track->batches[i].start)
			cuda.cuEventDestroy_v2(track->batches[i].start);
		if (track->batches[i].end)
			cuda.cuEventDestroy_v2(track->batches[i].end);
	}
	*track = (struct track){.is_used = false, .use = track->use + 1};
}

void track_lose_context(struct track *track)
{
	for (unsigned i = 0; i < TRACK_BATCHES; i++)
		track->batches[i].start = track->batches[i].end = NULL;
	track->is_open = false;
	track->is_chained = false;
	track->pending = 0;
	track->has_stream = false;
	track->use++;
}
