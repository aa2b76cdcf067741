/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time: when the work of each stream ends. */
#include "sim/cuda/model/time/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/context/green.h"
#include "sim/cuda/model/driver.h"
#include "sim/machine/inject.h"
#include "sim/machine/kept.h"
#include "sim/machine/schedule.h"

/* Events are placed so often, long before what tells their time is overwritten (LAYOUT_KNOTS). */
#define PLACE_NS UINT64_C(250000000)

/* Before a wait for another process is tried again where there is no room for one more. */
#define FULL_NS UINT64_C(200000)

/*
 * No work is ever done: each stream only knows until when it is busy. Work given to it starts when
 * the stream is free, at once if it is idle, and waiting is sleeping until then. Streams of a process
 * do not slow each other down, but where kernels fill the device (sim/machine/inject.h); processes take
 * turns, in which the clock of those that wait stands still. Copies from and to the host need no turn. It also stands still where a stream has come to an event of
 * another process that is not yet: as a whole, so the process's other streams wait as well.
 *
 * Streams and events are never given back to the C library but kept for the next, so that a handle
 * used after its end is refused and not followed into foreign memory.
 */

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *spare_streams;
static struct event *spare_events;
static unsigned long long next_stream_id = 1;

static void reset_stream(struct stream *stream, struct context *context)
{
	atomic_store_explicit(&stream->magic, STREAM_MAGIC, memory_order_relaxed);
	stream->is_blocking = true;
	stream->is_legacy = false;
	stream->flags = 0;
	stream->priority = 0;
	stream->context = context;
	stream->green = NULL;
	stream->busy_until_ns = 0;
	atomic_store_explicit(&stream->callbacks, 0, memory_order_relaxed);
	stream->captured = (struct captured){.capture = NULL};
	stream->next = NULL;
	stream->prev = NULL;
}

void timeline_init(struct context *context)
{
	struct timeline *timeline = &context->timeline;

	LOCK_SCOPE(&context->device->time_lock);
	reset_stream(&timeline->legacy, context);
	timeline->legacy.is_legacy = true;
	timeline->legacy.is_blocking = false;
	timeline->streams = NULL;
	timeline->events = NULL;
	timeline->blocking_until_ns = 0;
	timeline->until_ns = 0;
	timeline->placed_ns = 0;
}

static void spare_stream(struct stream *stream)
{
	/* Relaxed: a handle used while it is destroyed may still be taken for good. */
	atomic_store_explicit(&stream->magic, 0, memory_order_relaxed);
	LOCK_SCOPE(&spare_lock);
	stream->next = spare_streams;
	spare_streams = stream;
}

static void spare_event(struct event *event)
{
	atomic_store_explicit(&event->magic, 0, memory_order_relaxed);
	LOCK_SCOPE(&spare_lock);
	event->next = spare_events;
	spare_events = event;
}

/* Work of the device goes on until the last of its contexts' streams ends. */
static void cut(const struct context *ended)
{
	const struct device *device = ended->device;
	uint64_t until = 0;

	for (const struct context *c = driver.contexts; c; c = c->next) {
		if (c != ended && c->device == device && context_is_alive(c) &&
			c->timeline.until_ns > until)
			until = c->timeline.until_ns;
	}
	schedule_cut(driver.machine, device->index, until);
}

void timeline_clear(struct context *context)
{
	struct timeline *timeline = &context->timeline;

	LOCK_SCOPE(&context->device->time_lock);
	while (timeline->streams) {
		struct stream *stream = timeline->streams;

		timeline->streams = stream->next;
		spare_stream(stream);
	}
	while (timeline->events) {
		struct event *event = timeline->events;

		timeline->events = event->next;
		if (event->is_shared && !event->is_opened)
			shared_event_end(driver.machine, &event->shared);
		spare_event(event);
	}
	cut(context);
}

static struct stream *take_stream(struct context *context)
{
	struct stream *stream;

	LOCK_SCOPE(&spare_lock);
	stream = spare_streams;
	if (stream)
		spare_streams = stream->next;
	else
		stream = calloc(1, sizeof(*stream));
	if (!stream)
		return NULL;
	reset_stream(stream, context);
	stream->id = ++next_stream_id;
	return stream;
}

struct stream *timeline_new_stream(struct context *context, unsigned int flags, int priority)
{
	struct timeline *timeline = &context->timeline;
	struct stream *stream = take_stream(context);

	if (!stream)
		return NULL;
	stream->flags = flags;
	stream->priority = priority;
	stream->is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
	LOCK_SCOPE(&context->device->time_lock);
	stream->next = timeline->streams;
	if (timeline->streams)
		timeline->streams->prev = stream;
	timeline->streams = stream;
	return stream;
}

static void unlink_stream(struct stream *stream)
{
	LOCK_SCOPE(&stream->context->device->time_lock);
	if (stream->prev)
		stream->prev->next = stream->next;
	else
		stream->context->timeline.streams = stream->next;
	if (stream->next)
		stream->next->prev = stream->prev;
}

void timeline_free_stream(struct stream *stream)
{
	unlink_stream(stream);
	spare_stream(stream);
}

static struct event *take_event(void)
{
	struct event *event;

	LOCK_SCOPE(&spare_lock);
	event = spare_events;
	if (event)
		spare_events = event->next;
	else
		event = calloc(1, sizeof(*event));
	return event;
}

struct event *timeline_new_event(struct context *context, unsigned int flags)
{
	struct timeline *timeline = &context->timeline;
	struct event *event = take_event();

	if (!event)
		return NULL;
	LOCK_SCOPE(&context->device->time_lock);
	*event = (struct event){.magic = EVENT_MAGIC, .flags = flags, .context = context};
	event->next = timeline->events;
	if (timeline->events)
		timeline->events->prev = event;
	timeline->events = event;
	return event;
}

static void unlink_event(struct event *event)
{
	LOCK_SCOPE(&event->context->device->time_lock);
	if (event->prev)
		event->prev->next = event->next;
	else
		event->context->timeline.events = event->next;
	if (event->next)
		event->next->prev = event->prev;
}

void timeline_free_event(struct event *event)
{
	unlink_event(event);
	if (event->is_shared && !event->is_opened)
		shared_event_end(driver.machine, &event->shared);
	spare_event(event);
}

struct stream *timeline_check_stream(CUstream handle)
{
	struct stream *stream = (struct stream *)handle;

	/* Relaxed: see spare_stream(). */
	return atomic_load_explicit(&stream->magic, memory_order_relaxed) == STREAM_MAGIC ? stream
											  : NULL;
}

struct event *timeline_find_event(CUevent handle)
{
	struct event *event = (struct event *)handle;

	/* Relaxed: see spare_stream(). */
	return event && atomic_load_explicit(&event->magic, memory_order_relaxed) == EVENT_MAGIC
		       ? event
		       : NULL;
}

/* When work given to the stream at that time would start. Under time_lock. */
static uint64_t ready_ns(const struct stream *stream, uint64_t now_ns)
{
	const struct timeline *timeline = &stream->context->timeline;
	uint64_t ready = stream->busy_until_ns > now_ns ? stream->busy_until_ns : now_ns;

	if (stream->is_legacy && timeline->blocking_until_ns > ready)
		ready = timeline->blocking_until_ns;
	if (stream->is_blocking && timeline->legacy.busy_until_ns > ready)
		ready = timeline->legacy.busy_until_ns;
	return ready;
}

uint64_t timeline_now(const struct device *device)
{
	return schedule_now(driver.machine, device->index);
}

uint64_t timeline_ready_ns(struct stream *stream, uint64_t now_ns)
{
	LOCK_SCOPE(&stream->context->device->time_lock);
	return ready_ns(stream, now_ns);
}

void timeline_mark(struct event *event, uint64_t time_ns)
{
	if (event->is_shared)
		shared_event_record(
			driver.machine, &event->shared, event->context->device->index, time_ns);
	LOCK_SCOPE(&event->context->device->time_lock);
	event->time_ns = time_ns;
	event->is_recorded = true;
	event->placed_ns = 0;
}

uint64_t timeline_event_ns(struct event *event)
{
	LOCK_SCOPE(&event->context->device->time_lock);
	return event->is_recorded ? event->time_ns : 0;
}

/* Under time_lock. */
static bool place(struct event *event)
{
	return event->placed_ns != 0 ||
	       schedule_find_time(driver.machine, event->context->device->index, event->time_ns,
		       &event->placed_ns);
}

bool timeline_place(struct event *event, uint64_t *ret_time_ns)
{
	bool is_placed;

	LOCK_SCOPE(&event->context->device->time_lock);
	is_placed = place(event);
	*ret_time_ns = event->placed_ns;
	return is_placed;
}

/* Under time_lock. */
static void place_all(struct context *context, uint64_t now_ns)
{
	struct timeline *timeline = &context->timeline;

	if (now_ns - timeline->placed_ns < PLACE_NS)
		return;
	timeline->placed_ns = now_ns;
	for (struct event *event = timeline->events; event; event = event->next) {
		if (event->is_recorded && event->time_ns <= now_ns)
			place(event);
	}
}

uint64_t timeline_carry(const struct device *from, const struct device *to, uint64_t time_ns)
{
	uint64_t then, here, there;

	if (from == to || time_ns == 0)
		return time_ns;
	there = timeline_now(from);
	here = timeline_now(to);
	then = here + (time_ns - there);
	return time_ns > there ? then : here;
}

/* When work starts that is given to the device to start then, and takes so long. Under time_lock. */
static uint64_t fill_up(struct device *device, uint64_t start_ns, uint64_t duration_ns)
{
	if (!inject_do_kernels_fill(driver.machine))
		return start_ns;
	if (start_ns < device->full_until_ns)
		start_ns = device->full_until_ns;
	device->full_until_ns = start_ns + duration_ns;
	return start_ns;
}

/*
 * NVIDIA's documentation of cuCtxDestroy() leaves it to the program that no call is in the context meanwhile, and has
 * CUDA_ERROR_CONTEXT_IS_DESTROYED for threads that use one that has ended. What a card works through (channels) is of the context and ends
 * with that, so nothing that comes later is ever done.
 */
CUresult timeline_add(
	struct stream *stream, uint64_t duration_ns, bool is_busy, uint64_t *ret_end_ns)
{
	struct context *context = stream->context;
	struct timeline *timeline = &context->timeline;
	struct device *device = context->device;
	uint64_t now, start, end;

	LOCK_SCOPE(&device->time_lock);
	/* Who ends it says so before he takes the lock to end what is under way. */
	if (!context_is_alive(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	now = schedule_begin(driver.machine, device->index);
	start = ready_ns(stream, now);
	if (is_busy && duration_ns)
		start = fill_up(device, start, duration_ns);
	end = start + duration_ns;
	stream->busy_until_ns = end;
	if (stream->is_blocking && end > timeline->blocking_until_ns)
		timeline->blocking_until_ns = end;
	if (end > timeline->until_ns)
		timeline->until_ns = end;
	schedule_end(driver.machine, device->index, start, is_busy ? end : start);
	place_all(context, now);
	*ret_end_ns = end;
	return CUDA_SUCCESS;
}

uint64_t timeline_add_elsewhere(const struct stream *stream, struct context *context,
	uint64_t time_ns, uint64_t duration_ns)
{
	const struct device *own = stream->context->device;
	struct device *device = context->device;
	uint64_t start = timeline_carry(own, device, time_ns), now, end;

	LOCK_SCOPE(&device->time_lock);
	if (!context_is_alive(context))
		return time_ns;
	now = schedule_begin(driver.machine, device->index);
	start = fill_up(device, start > now ? start : now, duration_ns);
	end = start + duration_ns;
	if (end > context->timeline.until_ns)
		context->timeline.until_ns = end;
	schedule_end(driver.machine, device->index, start, end);
	return timeline_carry(device, own, end);
}

/* Under time_lock. */
static void hold(struct stream *stream, uint64_t time_ns)
{
	struct timeline *timeline = &stream->context->timeline;

	if (time_ns > stream->busy_until_ns)
		stream->busy_until_ns = time_ns;
	if (stream->is_blocking && time_ns > timeline->blocking_until_ns)
		timeline->blocking_until_ns = time_ns;
	if (time_ns > timeline->until_ns)
		timeline->until_ns = time_ns;
}

static void sleep_to(uint64_t time_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

bool timeline_is_elsewhere(struct event *event, struct schedule_point *ret_point)
{
	return event->is_shared && shared_event_read(driver.machine, &event->shared, ret_point) &&
	       !schedule_is_own(driver.machine, ret_point);
}

/* False: more waits are before it than there is room for. */
static bool try_hold_for(struct stream *stream, const struct schedule_point *point)
{
	int device = stream->context->device->index;
	uint64_t at;
	bool is_held;

	LOCK_SCOPE(&stream->context->device->time_lock);
	at = ready_ns(stream, schedule_begin(driver.machine, device));
	is_held = schedule_hold(driver.machine, device, at, point);
	schedule_end(driver.machine, device, at, at);
	/* What comes after it is later than the moment at which the clock stands still. */
	if (is_held)
		hold(stream, at + 1);
	return is_held;
}

void timeline_hold_for(struct stream *stream, const struct schedule_point *point)
{
	const struct device *device = stream->context->device;
	uint64_t now = machine_now_ns(), then;
	bool is_end;

	if (schedule_is_beside(driver.machine, device->index, point)) {
		while (!schedule_is_past(driver.machine, point) && !try_hold_for(stream, point))
			sleep_to(machine_now_ns() + FULL_NS);
		return;
	}
	/* On another device: as near as can be foreseen. */
	then = schedule_expect_point(driver.machine, point, &is_end);
	if (then > now)
		timeline_hold(stream, timeline_now(device) + (then - now));
}

void timeline_hold(struct stream *stream, uint64_t time_ns)
{
	LOCK_SCOPE(&stream->context->device->time_lock);
	hold(stream, time_ns);
}

void timeline_hold_green(struct context *context, const struct green *green, uint64_t time_ns)
{
	LOCK_SCOPE(&context->device->time_lock);
	if (!green)
		hold(&context->timeline.legacy, time_ns);
	for (struct stream *stream = context->timeline.streams; stream; stream = stream->next) {
		if (!green || stream->green == green)
			hold(stream, time_ns);
	}
}

void timeline_forget_green(struct context *context, const struct green *green)
{
	LOCK_SCOPE(&context->device->time_lock);
	for (struct stream *stream = context->timeline.streams; stream; stream = stream->next)
		if (stream->green == green)
			stream->green = NULL;
}

uint64_t timeline_end_green(struct context *context, const struct green *green)
{
	uint64_t end = 0;

	if (!green)
		return timeline_end_all(context);
	LOCK_SCOPE(&context->device->time_lock);
	for (struct stream *stream = context->timeline.streams; stream; stream = stream->next) {
		if (stream->green == green && ready_ns(stream, 0) > end)
			end = ready_ns(stream, 0);
	}
	return end;
}

uint64_t timeline_end(struct stream *stream)
{
	LOCK_SCOPE(&stream->context->device->time_lock);
	return ready_ns(stream, 0);
}

uint64_t timeline_end_all(struct context *context)
{
	LOCK_SCOPE(&context->device->time_lock);
	return context->timeline.until_ns;
}

/* Sleeps until then, and to the moment where is_exact: timers are late, but those of a virtual clock never. */
static void sleep_until(uint64_t time_ns, bool is_exact)
{
	enum { SPIN_NS = 50000 };
	uint64_t wake = is_exact ? time_ns - SPIN_NS : time_ns;

	if (wake > machine_now_ns())
		sleep_to(wake);
	if (is_exact && machine_now_ns() == wake)
		sleep_to(time_ns);
	while (is_exact && machine_now_ns() < time_ns)
		;
}

void timeline_sleep_until(struct context *context, uint64_t time_ns)
{
	struct device *device = context->device;
	uint64_t wake;
	bool is_end;

	while ((wake = schedule_expect(driver.machine, device->index, time_ns, &is_end)) != 0) {
		sleep_until(wake, is_end);
		LOCK_SCOPE(&device->time_lock);
		place_all(context, timeline_now(device));
	}
}

void timeline_sleep_for(struct context *context, const struct schedule_point *point)
{
	uint64_t wake;
	bool is_end;

	while ((wake = schedule_expect_point(driver.machine, point, &is_end)) != 0) {
		sleep_until(wake, is_end);
		LOCK_SCOPE(&context->device->time_lock);
		place_all(context, timeline_now(context->device));
	}
}

bool timeline_is_idle(struct stream *stream)
{
	uint64_t now = timeline_now(stream->context->device);

	LOCK_SCOPE(&stream->context->device->time_lock);
	/* Relaxed: a callback that ends meanwhile may be seen or not. */
	return ready_ns(stream, 0) <= now &&
	       atomic_load_explicit(&stream->callbacks, memory_order_relaxed) == 0;
}
