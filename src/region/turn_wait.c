/* SPDX-License-Identifier: Apache-2.0 */
/* How who waits for a turn sleeps, until there is news. */
#include "region/turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "region/turn_record.h"

#define LOOK_NS UINT64_C(500000) /* where its news do not wake us, they are looked for */
#define CUT_NS	50000		 /* a record that was cut short is found so by the next poll */

static void at_most(struct timespec *rest, uint64_t ns)
{
	if (rest->tv_sec || (uint64_t)rest->tv_nsec > ns)
		*rest = (struct timespec){.tv_nsec = (long)ns};
}

static int sleep_for(const struct timespec *rest)
{
	return nanosleep(rest, NULL) < 0 ? -errno : 0;
}

/* Until it is another number than that. -ETIMEDOUT, or -EAGAIN where it is already. */
static int sleep_on(const void *news, uint32_t seen, const struct timespec *rest)
{
	return syscall(SYS_futex, news, FUTEX_WAIT, seen, rest, NULL, 0) < 0 ? -errno : 0;
}

/* A slice wakes some of those that sleep on its record: behind a crowd, which is anybody's, nobody is woken. */
static void note_crowd(struct turn *t, unsigned peer, bool is_woken, uint32_t slept_on)
{
	struct turn_peer_record *record = &t->peer_records[peer];
	uint32_t news;

	if (is_woken)
		record->is_crowded = false;
	else if (turn_record_read_news(t, peer, &news) && news != slept_on)
		record->is_crowded = true;
}

/* For a peer's news. */
static int wait_for_peer(struct turn *t, unsigned peer, struct timespec *rest)
{
	const struct turn_peer_record *record = &t->peer_records[peer];
	uint32_t news;
	int r;

	/* Its page is not touched: its news are not heard, and looked for. */
	if (t->peers[peer].doubt.is_slow) {
		at_most(rest, LOOK_NS);
		return sleep_for(rest);
	}
	/* What woke sleepers since we decided to wait did not wake us. */
	if (!turn_record_is_as_read(t, peer, &news))
		return 0;
	if (record->is_crowded)
		at_most(rest, LOOK_NS);
	r = sleep_on((const char *)record->at + offsetof(struct turn_face, news), news, rest);
	if (r == 0 || r == -ETIMEDOUT)
		note_crowd(t, peer, r == 0, news);
	return r;
}

static int wait_until(struct turn *t, uint64_t now_ns, uint64_t until_ns)
{
	struct timespec rest = {.tv_sec = (time_t)((until_ns - now_ns) / 1000000000u),
		.tv_nsec = (long)((until_ns - now_ns) % 1000000000u)};
	int r;

	if (!t->own)
		return sleep_for(&rest);
	r = t->awaited >= 0 && (uint32_t)t->awaited < t->peer_count
		    ? wait_for_peer(t, (unsigned)t->awaited, &rest)
		    : sleep_on(&t->own->face.news, t->own_news, &rest);
	/* The other's record was cut short. The next poll finds that out; spinning until then is spared. */
	if (r == -EFAULT)
		return sleep_for(&(struct timespec){.tv_nsec = CUT_NS});
	return r == -EAGAIN || r == -ETIMEDOUT ? 0 : r;
}

int turn_wait(struct turn *t, uint64_t until_ns)
{
	uint64_t now_ns = t->own ? t->clock_ns() : clock_now_ns();
	int saved = errno, r = 0;

	if (now_ns < until_ns)
		r = wait_until(t, now_ns, until_ns);
	errno = saved;
	return r;
}
