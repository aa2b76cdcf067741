/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions in streams: run by a thread of the driver when their time comes. */
#include "sim/cuda/model/time/callback.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/time/timeline.h"
#include "sim/machine/clock.h"
#include "sim/machine/kept.h"
#include "sim/machine/schedule.h"

/*
 * One thread for the whole process, started at the first callback, takes them in order of their
 * time. A slow callback holds up others; later work of its own stream does not wait for it, but
 * whoever synchronises with the stream does.
 */

struct callback {
	uint64_t time_ns; /* of its device's clock */
	struct context *context;
	struct stream *stream;
	CUstream handle;
	CUhostFn fn;
	CUstreamCallback callback;
	void *user_data;
	struct callback_word word; /* it is done when this is so; bytes 0: nothing to wait for */
	struct callback *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_cond_t done;
static struct callback *queue; /* those of one device by time */
static struct callback *running;
static unsigned int word_count; /* entries of the queue that wait for a word */
static pthread_t runner;
static bool is_started;

static void run(struct callback *entry)
{
	if (entry->fn)
		entry->fn(entry->user_data);
	else if (entry->callback)
		entry->callback(entry->handle, CUDA_SUCCESS, entry->user_data);
}

/* Nobody says when a word changes, so it is read this often. */
#define WORD_POLL_NS UINT64_C(1000000)

/* A word whose memory is gone keeps nobody: the kernel reads it, for it may go at any time. */
static bool is_so(const struct callback_word *word)
{
	uint64_t value = 0, wanted = word->value;
	struct iovec here = {&value, word->bytes}, there = {(void *)word->address, word->bytes};

	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)word->bytes)
		return true;
	switch (word->flags) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return word->bytes == 8 ? (int64_t)(value - wanted) >= 0
					: (int32_t)((uint32_t)value - (uint32_t)wanted) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return value == wanted;
	case CU_STREAM_WAIT_VALUE_AND:
		return (value & wanted) != 0;
	default:
		return word->bytes == 8 ? ~(value | wanted) != 0
					: ~((uint32_t)value | (uint32_t)wanted) != 0;
	}
}

/* Whether an earlier entry of its stream still waits for a word. Under the lock. */
static bool is_behind_word(const struct callback *entry)
{
	for (const struct callback *other = queue; other != entry; other = other->next) {
		if (other->word.bytes && other->stream == entry->stream)
			return true;
	}
	return false;
}

/* Takes the first whose time has come; NULL: none, and when to try again. Under the lock. */
static struct callback *take(uint64_t *ret_wake_ns)
{
	uint64_t seen = 0; /* a bit a device: its others come later than its first */

	*ret_wake_ns = UINT64_MAX;
	for (struct callback **place = &queue; *place; place = &(*place)->next) {
		struct callback *entry = *place;
		int device = entry->context->device->index;
		uint64_t wake;
		bool is_end;

		if ((seen >> device & 1) != 0 || (word_count && is_behind_word(entry)))
			continue;
		wake = schedule_expect(driver.machine, device, entry->time_ns, &is_end);
		if (wake == 0 && entry->word.bytes && !is_so(&entry->word))
			wake = machine_now_ns() + WORD_POLL_NS;
		else
			seen |= UINT64_C(1) << device;
		if (wake == 0) {
			word_count -= entry->word.bytes != 0;
			*place = entry->next;
			return entry;
		}
		if (wake < *ret_wake_ns)
			*ret_wake_ns = wake;
	}
	return NULL;
}

/* Conditions know no clock of the machine. */
static struct timespec until(uint64_t wake_ns)
{
	uint64_t now_ns = machine_now_ns(), ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return t;
}

static void *serve(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t wake;
		struct callback *entry = take(&wake);
		struct timespec wait_end;

		if (!entry && wake == UINT64_MAX) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		if (!entry) {
			wait_end = until(wake);
			pthread_cond_timedwait(&changed, &lock, &wait_end);
			continue;
		}
		running = entry;
		pthread_mutex_unlock(&lock);
		run(entry);
		pthread_mutex_lock(&lock);
		running = NULL;
		/* Relaxed: see timeline_is_idle(). */
		atomic_fetch_sub_explicit(&entry->stream->callbacks, 1, memory_order_relaxed);
		free(entry);
		pthread_cond_broadcast(&done);
	}
	return unused;
}

/* Under the lock. */
static int start(void)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int r;

	if (is_started)
		return 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_cond_init(&done, &attr);
	pthread_condattr_destroy(&attr);
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&runner, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return -r;
	pthread_detach(runner);
	is_started = true;
	return 0;
}

static CUresult add(struct stream *stream, const struct callback *wanted)
{
	struct callback *entry = malloc(sizeof(*entry));
	struct callback **place;
	CUresult result;

	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = *wanted;
	entry->context = stream->context;
	entry->stream = stream;
	result = timeline_add(stream, 0, false, &entry->time_ns);
	LOCK_SCOPE(&lock);
	if (result == CUDA_SUCCESS && start() != 0)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(entry);
		return result;
	}
	/* Relaxed: see timeline_is_idle(). */
	atomic_fetch_add_explicit(&stream->callbacks, 1, memory_order_relaxed);
	for (place = &queue; *place && (*place)->time_ns <= entry->time_ns; place = &(*place)->next)
		;
	entry->next = *place;
	*place = entry;
	word_count += entry->word.bytes != 0;
	pthread_cond_signal(&changed);
	return CUDA_SUCCESS;
}

CUresult callback_add(struct stream *stream, CUhostFn fn, CUstreamCallback callback,
	void *user_data, CUstream handle)
{
	return add(stream,
		&(struct callback){
			.fn = fn, .callback = callback, .user_data = user_data, .handle = handle});
}

CUresult callback_await(struct stream *stream, const struct callback_word *word)
{
	return add(stream, &(struct callback){.word = *word});
}

static bool is_waited_for(
	const struct callback *entry, const struct context *context, const struct stream *stream)
{
	return entry && (stream ? entry->stream == stream : entry->context == context);
}

static bool has_any(const struct context *context, const struct stream *stream)
{
	if (is_waited_for(running, context, stream))
		return true;
	for (const struct callback *entry = queue; entry; entry = entry->next) {
		if (is_waited_for(entry, context, stream))
			return true;
	}
	return false;
}

void callback_wait(struct context *context, struct stream *stream)
{
	LOCK_SCOPE(&lock);
	/* A callback that waits for itself is a mistake of the program, but not to hang on. */
	while (is_started && !pthread_equal(pthread_self(), runner) && has_any(context, stream))
		pthread_cond_wait(&done, &lock);
}

void callback_cancel(struct context *context)
{
	struct callback **place = &queue;

	LOCK_SCOPE(&lock);
	while (*place) {
		struct callback *entry = *place;

		if (entry->context != context) {
			place = &entry->next;
			continue;
		}
		word_count -= entry->word.bytes != 0;
		*place = entry->next;
		free(entry);
	}
	while (is_started && !pthread_equal(pthread_self(), runner) &&
		is_waited_for(running, context, NULL))
		pthread_cond_wait(&done, &lock);
}

void callback_wait_all(struct context *context, struct stream *stream)
{
	timeline_sleep_until(context, stream ? timeline_end(stream) : timeline_end_all(context));
	callback_wait(context, stream);
}
