/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a daemon: descriptors and timers of one thread.
 *
 * Everything a daemon does runs in the thread that calls loop_run(), one callback at a time, so that its
 * state needs no locks. A callback may add and remove any watch and timer, its own included: nothing is
 * called any more that was removed. Only loop_stop() may be called by another thread, or by a signal handler.
 * Watches and timers are the caller's memory, and must stay where they are while they are in the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

struct loop;

/* events are those of epoll. */
typedef void loop_watch_fn(void *context, uint32_t events);
typedef void loop_timer_fn(void *context);

struct loop_watch {
	loop_watch_fn *ready;
	void *context;
	int fd;
	bool is_in;
};

struct loop_timer {
	loop_timer_fn *due;
	void *context;
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	struct loop_timer *next, *previous;
	bool is_in;
};

enum {
	_LOOP_E_SUCCESS = 0,
	LOOP_E_STOPPED, /* loop_stop() was called */
};

int loop_new(struct loop **ret_loop) MUST_CHECK;
void loop_free(struct loop *loop);

/*
 * Calls watch->ready whenever one of the events (EPOLLIN, EPOLLOUT) is there, or an error. A second call
 * changes the events. The descriptor stays the caller's, who takes the watch out before he closes it.
 */
int loop_watch_add(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events) MUST_CHECK;
void loop_watch_remove(struct loop *loop, struct loop_watch *watch);

/* Calls timer->due once, not before due_ns. A second call sets another time. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns);
void loop_timer_clear(struct loop *loop, struct loop_timer *timer);

/*
 * Waits until something is ready or due, until_ns has come (UINT64_MAX: for ever) or the loop is stopped, and
 * calls what is due and one watch that is ready. LOOP_E_STOPPED from then on.
 */
int loop_run(struct loop *loop, uint64_t until_ns) MUST_CHECK;

/* Context: any thread, or a signal handler. */
void loop_stop(struct loop *loop);
