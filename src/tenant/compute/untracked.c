/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes on the device that take no turns.
 *
 * The figures of all of the slice's processes are added up, as their elapsed time is charged once where it
 * overlaps. A slice with a process that the driver does not list by a PID that we know
 * (another PID namespace, MPS) has no such sum, and is charged in full.
 */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/untracked.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/scratch.h"
#include "policy/untracked.h"
#include "region/process.h"
#include "tenant/compute/meters.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/stack.h"

#define SECOND_NS UINT64_C(1000000000)
/* A process that has not asked for so long leaves it to the next one; and later its findings are forgotten. */
#define LEAVES_S 3u
#define STALE_S	 10u
/* A driver that does not tell so often in a row will not. */
#define MISSES_MAX 5

_Static_assert(REGION_DEVICES <= 32, "untracked_corrected has a bit for each");

struct watch {
	struct lock lock; /* held for one poll, and only ever tried */
	_Atomic uint64_t next_ns;
	uint64_t seen_us; /* the driver's last time stamp */
	unsigned misses;
	bool is_poller; /* this process asked the last time */
	struct untracked untracked;
};
static struct watch watches[REGION_DEVICES];
_Atomic uint32_t untracked_corrected;

static uint32_t seconds(uint64_t now_ns)
{
	return (uint32_t)(now_ns / SECOND_NS);
}

static uint64_t poller_word(uint64_t now_ns)
{
	return (uint64_t)seconds(now_ns) << 32 | (state.slot + 1);
}

/* How long ago anybody has asked. */
static uint32_t age_s(uint64_t word, uint64_t now_ns)
{
	return word ? seconds(now_ns) - (uint32_t)(word >> 32) : UINT32_MAX;
}

/* relaxed all: each word is complete in itself, and a moment late does no harm */
static uint64_t get(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

/* The part in force; a word of the region's is believed within its bounds. */
static uint32_t in_force(const struct region_compute *books, uint64_t now_ns)
{
	uint64_t permille = get(&books->counted_permille);

	if (age_s(get(&books->untracked_poller), now_ns) > STALE_S ||
		permille < UNTRACKED_LEAST_PERMILLE || permille > UNTRACKED_MOST_PERMILLE)
		return UNTRACKED_ALL_PERMILLE;
	return (uint32_t)permille;
}

uint32_t untracked_counted_permille(const struct meter *m, uint64_t now_ns)
{
	uint32_t bit = UINT32_C(1) << m->device->entry;
	uint32_t permille =
		m->limits.is_limited ? in_force(m->books, now_ns) : UNTRACKED_ALL_PERMILLE;

	/* relaxed: see untracked_poll_before_wait() */
	if (permille == UNTRACKED_ALL_PERMILLE)
		atomic_fetch_and_explicit(&untracked_corrected, ~bit, memory_order_relaxed);
	else
		atomic_fetch_or_explicit(&untracked_corrected, bit, memory_order_relaxed);
	return permille;
}

/* A finding is believed for so long. */
#define SEEN_S 3u

uint32_t untracked_others_percent(const struct meter *m, uint64_t now_ns)
{
	uint64_t word = get(&m->books->contended), until_s = word >> 32, now_s = now_ns / SECOND_NS;
	uint32_t percent = (uint32_t)word;

	if (!m->limits.is_limited || until_s <= now_s || until_s > now_s + SEEN_S)
		return 0;
	return percent < 100 ? percent : 100;
}

/* Whether this process asks for its slice, from now on or still. */
static bool is_ours(struct watch *w, struct region_compute *books, uint64_t now_ns)
{
	uint64_t word = get(&books->untracked_poller);
	bool is_other = (uint32_t)word != state.slot + 1;
	uint32_t permille = in_force(books, now_ns);

	if (is_other && age_s(word, now_ns) <= LEAVES_S)
		return w->is_poller = false;
	/* relaxed: as in get(); of two that come at once one is left to try again in a second */
	if (!atomic_compare_exchange_strong_explicit(&books->untracked_poller, &word,
		    poller_word(now_ns), memory_order_relaxed, memory_order_relaxed))
		return w->is_poller = false;
	if (is_other || !w->is_poller || permille != w->untracked.permille)
		w->untracked = (struct untracked){.permille = permille};
	return w->is_poller = true;
}

/* The mean of a process's rows, and how many there are. */
static uint32_t mean_of(const struct busy_rows *rows, unsigned pid, uint32_t *ret_count)
{
	uint32_t sum = 0, count = 0;

	for (unsigned i = 0; i < rows->count; i++) {
		/* Some drivers have figures that are none. */
		if (rows->at[i].pid != pid || rows->at[i].smUtil > 100)
			continue;
		sum += rows->at[i].smUtil;
		count++;
	}
	*ret_count = count;
	return count ? sum / count : 0;
}

/* The PID by which the driver lists a process of the slice; 0: not known. */
static unsigned listed_pid(const struct region_file *file, unsigned slot)
{
	/* relaxed: as in get() */
	if (own_pid() == (unsigned)getpid())
		return atomic_load_explicit(&file->own.slots[slot].pid, memory_order_relaxed);
	return (unsigned)atomic_load_explicit(
		&file->hami.slots[slot].host_pid, memory_order_relaxed);
}

/* What all of them show. */
static uint32_t sum_of(const struct busy_rows *rows)
{
	uint32_t sum = 0, count;

	for (unsigned i = 0; i < rows->count; i++) {
		unsigned pid = rows->at[i].pid, first = 0;

		while (rows->at[first].pid != pid)
			first++;
		if (first == i)
			sum += mean_of(rows, pid, &count);
	}
	return sum;
}

/* Adds up what the slice's processes show, and others; without samples where one of them is not known. */
static void add_up(const struct busy_rows *rows, struct untracked_reading *reading)
{
	const struct region_file *file = state.region.file;
	/* relaxed all: as in get() */
	unsigned high = atomic_load_explicit(&file->own.slot_high, memory_order_relaxed);
	uint64_t here = process_own_namespace();

	for (unsigned i = 0; i < high && i < REGION_SLOTS; i++) {
		const struct region_slot *slot = &file->own.slots[i];
		uint32_t count;

		if (atomic_load_explicit(&slot->state, memory_order_relaxed) != SLOT_LIVE)
			continue;
		if (atomic_load_explicit(&slot->pid_namespace, memory_order_relaxed) != here ||
			!listed_pid(file, i)) {
			reading->samples = 0;
			return;
		}
		reading->slice_percent += mean_of(rows, listed_pid(file, i), &count);
		if (count > reading->samples)
			reading->samples = count;
	}
	reading->others_percent = sum_of(rows) - reading->slice_percent;
}

/* Under the watch's lock. */
static void poll(struct watch *w, const struct meter *m, uint64_t now_ns)
{
	struct untracked_reading seen = {.now_ns = now_ns,
		.elapsed_ns = get(&m->books->elapsed_ns),
		.has_turns = get(&m->books->limits) & REGION_COMPUTE_TURNS};
	uint32_t before = w->untracked.permille, permille;
	SCRATCH_READY(struct busy_rows, rows);

	if (!rows)
		return;
	if (nvml_busy(m->device->uuid, w->seen_us, rows) < 0) {
		w->misses++;
		return;
	}
	w->misses = 0;
	for (unsigned i = 0; i < rows->count; i++)
		if (rows->at[i].timeStamp > w->seen_us)
			w->seen_us = rows->at[i].timeStamp;
	seen.device_percent = rows->device_percent;
	add_up(rows, &seen);
	permille = untracked_note(&w->untracked, &seen);
	log_debug("who keeps the device busy", U64("slice_percent", seen.slice_percent),
		U64("device_percent", seen.device_percent), U64("samples", seen.samples),
		U64("elapsed_ns", seen.elapsed_ns), U64("counted_permille", permille));
	/* relaxed: as in get() */
	atomic_store_explicit(&m->books->counted_permille, permille, memory_order_relaxed);
	atomic_store_explicit(&m->books->contended,
		seen.has_turns ? 0
			       : (now_ns / SECOND_NS + SEEN_S) << 32 |
					 untracked_contended_percent(&w->untracked),
		memory_order_relaxed);
	if (permille != before)
		log_info("processes without time slices share the device: of the time that passes "
			 "so much counts",
			STR("device", m->device->uuid), U64("permille", permille));
}

bool untracked_poll(struct meter *m, uint64_t now_ns)
{
	struct watch *w = &watches[m->device->entry];
	uint64_t next_ns = get(&w->next_ns);
	int saved_errno = errno;
	bool has_polled = false;

	/* relaxed: as in get() */
	if (LIKELY(now_ns < next_ns) || !lock_try(&w->lock))
		return false;
	/* A thread with a small stack leaves it to another one, or to another process. */
	if (!stack_has_room(STACK_BUSY_BYTES)) {
		lock_leave(&w->lock);
		return false;
	}
	atomic_store_explicit(&w->next_ns, now_ns + SECOND_NS, memory_order_relaxed);
	if (w->misses < MISSES_MAX && own_pid() && is_ours(w, m->books, now_ns)) {
		poll(w, m, now_ns);
		has_polled = true;
	}
	lock_leave(&w->lock);
	errno = saved_errno;
	return has_polled;
}

void untracked_poll_slowly(uint64_t now_ns)
{
	/* relaxed: as in untracked_poll_before_wait() */
	uint32_t corrected = atomic_load_explicit(&untracked_corrected, memory_order_relaxed);

	for (unsigned i = 0; i < REGION_DEVICES; i++)
		if (corrected >> i & 1)
			(void)untracked_poll(&meters[i], now_ns);
}

void untracked_reset_after_fork(void)
{
	for (unsigned i = 0; i < REGION_DEVICES; i++)
		watches[i] = (struct watch){.misses = 0};
	/* relaxed: the child has one thread */
	atomic_store_explicit(&untracked_corrected, 0, memory_order_relaxed);
}
