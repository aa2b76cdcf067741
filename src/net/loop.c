/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a daemon.
 *
 * One event is taken from the kernel at a time: what a callback removes can thus not stand in a list of
 * events that is still to be gone through. epoll puts a descriptor that stays ready behind the others, so
 * none starves. Timers are a sorted list: a daemon has some dozens.
 */
#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct loop {
	int epoll_fd, stop_fd;
	bool is_stopped;
	struct loop_watch stop_watch;
	struct loop_timer *first;
};

static void stop_is_ready(void *context, uint32_t events)
{
	struct loop *loop = context;

	loop->is_stopped = true;
	loop_watch_remove(loop, &loop->stop_watch);
}

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int error;

	if (!loop)
		return -ENOMEM;
	loop->stop_watch = (struct loop_watch){.ready = stop_is_ready, .context = loop};
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = loop->epoll_fd < 0 || loop->stop_fd < 0 ? -errno : 0;
	if (!error)
		error = loop_watch_add(loop, &loop->stop_watch, loop->stop_fd, EPOLLIN);
	if (error) {
		loop_free(loop);
		return error;
	}
	*ret_loop = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	cleanup_fd(&loop->epoll_fd);
	cleanup_fd(&loop->stop_fd);
	free(loop);
}

void loop_stop(struct loop *loop)
{
	const uint64_t one = 1;
	int saved_errno = errno;
	ssize_t written = write(loop->stop_fd, &one, sizeof(one));

	(void)written; /* it fails only where the count is at its end, so that it has been said before */
	errno = saved_errno;
}

int loop_watch_add(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (epoll_ctl(loop->epoll_fd, watch->is_in ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	watch->fd = fd;
	watch->is_in = true;
	return 0;
}

void loop_watch_remove(struct loop *loop, struct loop_watch *watch)
{
	if (!watch->is_in)
		return;
	watch->is_in = false;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
}

void loop_timer_clear(struct loop *loop, struct loop_timer *timer)
{
	if (!timer->is_in)
		return;
	timer->is_in = false;
	if (timer->previous)
		timer->previous->next = timer->next;
	else
		loop->first = timer->next;
	if (timer->next)
		timer->next->previous = timer->previous;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns)
{
	struct loop_timer *before = NULL, *after;

	loop_timer_clear(loop, timer);
	/* behind those of the same time: first set, first called */
	for (after = loop->first; after && after->due_ns <= due_ns; after = after->next)
		before = after;
	timer->due_ns = due_ns;
	timer->previous = before;
	timer->next = after;
	timer->is_in = true;
	if (before)
		before->next = timer;
	else
		loop->first = timer;
	if (after)
		after->previous = timer;
}

/*
 * Calls the timers that were due when this began, so that one which sets itself anew for now does not keep
 * the descriptors waiting.
 */
static void call_due_timers(struct loop *loop)
{
	uint64_t now = clock_now_ns();

	while (loop->first && loop->first->due_ns < now) {
		struct loop_timer *timer = loop->first;

		loop_timer_clear(loop, timer);
		timer->due(timer->context);
	}
}

/* In whole milliseconds, rounded up: one that is early would only wait again. */
static int wait_ms(const struct loop *loop, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();

	if (loop->first && loop->first->due_ns < until_ns)
		until_ns = loop->first->due_ns;
	if (until_ns == UINT64_MAX)
		return -1;
	if (until_ns <= now)
		return 0;
	until_ns = (until_ns - now) / 1000000 + 1;
	return until_ns < 3600000 ? (int)until_ns : 3600000;
}

int loop_run(struct loop *loop, uint64_t until_ns)
{
	struct epoll_event event;
	int count;

	if (loop->is_stopped)
		return LOOP_E_STOPPED;
	count = epoll_wait(loop->epoll_fd, &event, 1, wait_ms(loop, until_ns));
	if (count < 0 && errno != EINTR)
		return -errno;
	if (count > 0) {
		struct loop_watch *watch = event.data.ptr;

		watch->ready(watch->context, event.events);
	}
	call_due_timers(loop);
	return loop->is_stopped ? LOOP_E_STOPPED : 0;
}
