/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time: when the work of each stream ends. All times are of the process's clock of the device
 * (sim/machine/schedule.h), which stands still while the device works for other processes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

#include "sim/machine/shared_event.h"

struct capture;
struct context;
struct green;
struct device;
struct graph_node;

#define STREAM_MAGIC 0x53545231u
#define EVENT_MAGIC  0x45565431u

/* The part of a stream or an event in a capture (capture.c); under memory_lock. */
struct captured {
	struct capture *_Atomic capture; /* NULL: nothing */
	struct graph_node **tails;
	size_t tail_count;
};

/* The capture of a stream or event, or NULL. */
static inline struct capture *captured_by(const struct captured *captured)
{
	/* Relaxed: written under memory_lock; without it only the program's own order of calls counts. */
	return atomic_load_explicit(&captured->capture, memory_order_relaxed);
}

struct stream {
	_Atomic uint32_t magic; /* 0 once destroyed */
	bool is_blocking;	/* orders itself with the legacy stream */
	bool is_legacy;
	unsigned int flags;
	int priority;
	unsigned long long id;
	struct context *context;
	struct green *green; /* whose stream it is, or NULL */
	uint64_t busy_until_ns;
	_Atomic uint32_t callbacks; /* not yet run */
	struct captured captured;
	struct stream *next, *prev; /* of the context, or of the free list */
};

struct event {
	_Atomic uint32_t magic;
	unsigned int flags;
	bool is_recorded;
	bool is_shared; /* with other processes, by `shared` */
	bool is_opened; /* another process made it */
	struct shared_event shared;
	struct context *context;
	uint64_t time_ns;
	uint64_t placed_ns; /* when that was, as CLOCK_BOOTTIME; 0: not yet known */
	struct captured captured;
	struct event *next, *prev;
};

/* The streams of a context. Under the device's time_lock, like all of streams and events. */
struct timeline {
	struct stream legacy;
	struct stream *streams;
	struct event *events;
	uint64_t blocking_until_ns; /* the latest end of any blocking stream */
	uint64_t until_ns;	    /* the latest end of any stream */
	uint64_t placed_ns;	    /* when its events were last placed */
};

void timeline_init(struct context *context);
/* Forgets all work, streams and events of a context that ends. */
void timeline_clear(struct context *context);

/* A new stream or event; NULL without memory. Taking time_lock. */
struct stream *timeline_new_stream(struct context *context, unsigned int flags, int priority);
void timeline_free_stream(struct stream *stream);
struct event *timeline_new_event(struct context *context, unsigned int flags);
void timeline_free_event(struct event *event);

/* The stream of a handle that is none of the special ones, or NULL. */
struct stream *timeline_check_stream(CUstream handle);

/* The event of a handle, or NULL. */
struct event *timeline_find_event(CUevent handle);

/* The clock of a device. Takes no lock of the process. */
uint64_t timeline_now(const struct device *device);

/*
 * The moment at which an event happens that another process recorded last. False: this one did, or nobody has.
 */
bool timeline_is_elsewhere(struct event *event, struct schedule_point *ret_point);

/* Lets later work of the stream start when the moment of another process has come. Takes time_lock. */
void timeline_hold_for(struct stream *stream, const struct schedule_point *point);

/* Sleeps until then, as timeline_sleep_until(). */
void timeline_sleep_for(struct context *context, const struct schedule_point *point);

/* The event happens at that time of its device. Takes time_lock. */
void timeline_mark(struct event *event, uint64_t time_ns);

/* When the event happens; 0 if it was never recorded. Takes time_lock. */
uint64_t timeline_event_ns(struct event *event);

/* When the event happened, as CLOCK_BOOTTIME. False: it has not yet. Takes time_lock. */
bool timeline_place(struct event *event, uint64_t *ret_time_ns);

/*
 * A time of one device's clock as that of another device: as near as can be foreseen, for the turns
 * that others will have in between are not known.
 */
uint64_t timeline_carry(const struct device *from, const struct device *to, uint64_t time_ns);

/* When work given to the stream at that time of its device would start. Takes time_lock. */
uint64_t timeline_ready_ns(struct stream *stream, uint64_t now_ns);

/*
 * When the work of the streams of a green context (NULL: of all) ends, and lets later work in them
 * start at time_ns or after. Taking time_lock.
 */
uint64_t timeline_end_green(struct context *context, const struct green *green);
void timeline_hold_green(struct context *context, const struct green *green, uint64_t time_ns);

/* Its streams are nobody's from now on. Takes time_lock. */
void timeline_forget_green(struct context *context, const struct green *green);

/*
 * Gives a stream work of this length, which ends at *ret_end_ns; counts it as work of the device when is_busy.
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: its context ended since the call looked it up, and work ends with its context. Takes time_lock.
 */
CUresult timeline_add(
	struct stream *stream, uint64_t duration_ns, bool is_busy, uint64_t *ret_end_ns);

/*
 * Gives another device work of this length in a context of its own, which begins at that time of the stream's device, as near as can be
 * foreseen. Returns when it ends, by the stream's device. Takes time_lock of the other.
 */
uint64_t timeline_add_elsewhere(const struct stream *stream, struct context *context,
	uint64_t time_ns, uint64_t duration_ns);

/* Lets later work of the stream start at time_ns or after. Takes time_lock. */
void timeline_hold(struct stream *stream, uint64_t time_ns);

/* When all work of a stream, of a context ends; takes time_lock. */
uint64_t timeline_end(struct stream *stream);
uint64_t timeline_end_all(struct context *context);

/*
 * Sleeps until the clock of the context's device shows that. Spins at most for the last 50 us, which
 * timers are too coarse for.
 */
void timeline_sleep_until(struct context *context, uint64_t time_ns);

/* Whether a stream has neither work nor callbacks left. */
bool timeline_is_idle(struct stream *stream);
