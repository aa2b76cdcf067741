/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that a process follows.
 *
 * Of the clocks of a process, a time namespace shifts CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW and CLOCK_BOOTTIME, and with
 * them sysinfo() and /proc/uptime. It leaves CLOCK_REALTIME and the kernel's ticks as they are. The ticks cannot be set, and
 * stand still in suspend as CLOCK_MONOTONIC does, but are coarse; CLOCK_REALTIME is exact, runs at the same rate, also while
 * NTP slews it, and can be set by root. So what both say is a shift, and what CLOCK_REALTIME alone says is that it was set. Where that
 * was by less than TICKS_NS, it is taken for a shift: all who follow the mark go by that much together.
 */
#include "base/clock.h"

#include <errno.h>
#include <sys/times.h>
#include <unistd.h>

#define SAME_NS	    20000 /* closer than two marks of one clock are read on a busy machine */
#define TICKS_NS    INT64_C(100000000) /* a tick of 10 ms, and some that a busy machine owes */
#define BACKWARD_NS 1000000u	       /* two processors may read the clock the other way round */
#define TRIES	    8
#define NEAR_NS	    2000 /* two readings with a third between them are one */

/* For ticks that came late: so often, and so far apart. */
#define PATIENCE 25
#define REST_NS	 2000000

HOT_WORD struct clock_lead clock_lead;

/* Of the clock that was shown when it was last looked at. Only ever written together by a process of one thread. */
static struct {
	_Atomic bool is_on;
	_Atomic int64_t ticks_ns, wall_ns;
} followed;

static int64_t distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

static int64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* 0: the kernel does not tell. It begins to count far above that. */
static int64_t ticks_ns(void)
{
	int saved_errno = errno;
	struct tms unused;
	int64_t ticks = (int64_t)times(&unused);

	errno = saved_errno;
	return ticks > 0 ? ticks * (1000000000 / sysconf(_SC_CLK_TCK)) : 0;
}

/* The processor may be taken away between two clocks: of some readings, the one that took least. */
struct clock_mark clock_own_mark(void)
{
	struct clock_mark mark = {0};
	uint64_t least_ns = UINT64_MAX;

	for (unsigned i = 0; i < TRIES && least_ns > NEAR_NS; i++) {
		int64_t ticks = ticks_ns(), wall;
		uint64_t before = clock_shown_ns(), after;

		wall = wall_ns();
		after = clock_shown_ns();
		if (after - before >= least_ns)
			continue;
		least_ns = after - before;
		mark.ticks_ns = ticks ? (int64_t)before - ticks : 0;
		mark.wall_ns = wall - (int64_t)(before + least_ns / 2);
	}
	return mark;
}

enum clock_relation clock_relate(
	const struct clock_mark *mark, const struct clock_mark *own, int64_t *ret_ahead_ns)
{
	int64_t by_wall = mark->wall_ns - own->wall_ns;
	int64_t by_ticks = own->ticks_ns - mark->ticks_ns;

	*ret_ahead_ns = 0;
	if (distance(by_wall, 0) < SAME_NS)
		return CLOCK_SAME;
	if (!mark->ticks_ns || !own->ticks_ns || distance(by_wall, by_ticks) < TICKS_NS) {
		*ret_ahead_ns = by_wall;
		return CLOCK_SHIFTED;
	}
	return distance(by_ticks, 0) < TICKS_NS ? CLOCK_WALL_SET : CLOCK_OTHER;
}

/* relaxed, all: see struct followed */
static void follow(const struct clock_mark *own, uint64_t ahead_ns)
{
	atomic_store_explicit(&followed.ticks_ns, own->ticks_ns, memory_order_relaxed);
	atomic_store_explicit(&followed.wall_ns, own->wall_ns, memory_order_relaxed);
	atomic_store_explicit(&clock_lead.ahead_ns, ahead_ns, memory_order_relaxed);
	atomic_store_explicit(&followed.is_on, true, memory_order_relaxed);
}

bool clock_follow(struct clock_mark *mark)
{
	struct timespec rest = {.tv_nsec = REST_NS};
	struct clock_mark own = clock_own_mark(), again;
	enum clock_relation relation = CLOCK_OTHER;
	int64_t ahead_ns = 0;

	if (mark->wall_ns)
		relation = clock_relate(mark, &own, &ahead_ns);
	/* Ticks that come late make the clock look ahead of them. */
	for (unsigned i = 0; mark->wall_ns && relation >= CLOCK_WALL_SET && i < PATIENCE; i++) {
		nanosleep(&rest, NULL);
		again = clock_own_mark();
		if (again.ticks_ns < own.ticks_ns)
			own = again;
		relation = clock_relate(mark, &own, &ahead_ns);
	}
	follow(&own, (uint64_t)ahead_ns);
	if (relation == CLOCK_WALL_SET)
		mark->wall_ns = own.wall_ns;
	else if (relation == CLOCK_OTHER)
		*mark = own;
	return relation < CLOCK_WALL_SET;
}

/*
 * What the ticks do not say is no shift here: where CLOCK_REALTIME was set, a time that goes backward would harm more than one that
 * is wrong by less than TICKS_NS.
 */
static void look_for_shift(void)
{
	/* relaxed, all: see struct followed */
	struct clock_mark before = {
		.ticks_ns = atomic_load_explicit(&followed.ticks_ns, memory_order_relaxed),
		.wall_ns = atomic_load_explicit(&followed.wall_ns, memory_order_relaxed)};
	uint64_t ahead_ns = atomic_load_explicit(&clock_lead.ahead_ns, memory_order_relaxed);
	struct clock_mark own = clock_own_mark();
	int64_t shift_ns;

	if (clock_relate(&before, &own, &shift_ns) == CLOCK_OTHER)
		shift_ns = own.ticks_ns - before.ticks_ns; /* CLOCK_REALTIME was set as well */
	if (distance(shift_ns, 0) >= TICKS_NS)
		follow(&own, ahead_ns + (uint64_t)shift_ns);
	else
		atomic_store_explicit(&followed.wall_ns, own.wall_ns, memory_order_relaxed);
}

uint64_t clock_look(void)
{
	uint64_t now;

	/* relaxed, all: see struct followed */
	if (atomic_load_explicit(&followed.is_on, memory_order_relaxed))
		look_for_shift();
	now = clock_shown_ns() - atomic_load_explicit(&clock_lead.ahead_ns, memory_order_relaxed);
	atomic_store_explicit(&clock_lead.seen_ns, now - BACKWARD_NS, memory_order_relaxed);
	return now;
}
