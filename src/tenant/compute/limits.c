/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter's limits: what the share, the environment and HAMi's monitor say of a device, looked at every
 * 50 ms by whoever comes along, and told to those who watch.
 */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/limits.h"

#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "policy/share.h"
#include "region/slot.h"
#include "tenant/compute/backlog.h"
#include "tenant/compute/poll.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/untracked.h"
#include "tenant/compute/signals.h"
#include "tenant/compute/turns.h"

/*
 * A monitor that has blocked for so long without a break may be gone. So it is asked, by another number below 0, which one that
 * lives replaces at its next look, each five seconds. Where no answer comes, as from HAMi's, work goes on for a moment.
 */
#define BLOCK_NS UINT64_C(60000000000)
#define ASK_NS	 UINT64_C(12000000000)
#define ASKED	 (-2)

#define SHOW_NS	 1000000000u

/* A slice that cannot see who else is there works beside all of them. It costs them no more than that. */
#define BLIND_PERMILLE 20

/* How often the dead of the slice are looked for: what one had under way is charged until then. */
#define DEAD_NS UINT64_C(200000000)

/* HAMi's monitor reads this as "launched lately", and counts it down. */
#define RECENT_KERNEL 2

static struct lock mode_lock; /* before any meter's: held while the gate's mode is decided */

/*
 * Whether work came since the last poll. Where it is not metered, nothing counts it, but it is work that polls then (gate.c).
 */
static bool has_work(const struct meter *m)
{
	/* relaxed: see gate_is_open() */
	return m->counts.batches != m->limits.seen_batches ||
	       atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_POLL;
}

/* Whether a monitor lets others go first. */
static void heed_block(struct limits *l, _Atomic int32_t *recent, uint64_t now_ns)
{
	/* relaxed, all: HAMi's monitor and we write it without order, and read it again soon */
	int32_t said = atomic_load_explicit(recent, memory_order_relaxed);
	bool is_asked = said == ASKED;

	l->is_blocked = said < 0;
	if (said >= 0) {
		l->blocked_since_ns = 0;
	} else if (!l->blocked_since_ns || is_asked != l->is_asked) {
		l->blocked_since_ns = now_ns;
		l->is_asked = is_asked;
	} else if (now_ns > l->blocked_since_ns + (is_asked ? ASK_NS : BLOCK_NS)) {
		atomic_compare_exchange_strong(recent, &said, is_asked ? 0 : ASKED);
		if (is_asked)
			log_warn("a monitor let others go first, and does not answer: going on");
	}
}

/* relaxed all: see heed_block() */
static void heed_monitor(struct meter *m, uint64_t now_ns)
{
	struct hami_region *hami = &state.region.file->hami;
	int32_t recent;

	heed_block(&m->limits, &hami->recent_kernel, now_ns);
	recent = atomic_load_explicit(&hami->recent_kernel, memory_order_relaxed);
	if (has_work(m) && recent >= 0) {
		if (recent != RECENT_KERNEL)
			atomic_compare_exchange_strong(
				&hami->recent_kernel, &recent, RECENT_KERNEL);
		atomic_store_explicit(
			&hami->last_kernel_s, (uint64_t)time(NULL), memory_order_relaxed);
		m->limits.seen_batches = m->counts.batches;
	}
}

/* How busy this process kept the device, for HAMi's monitor, in whole percent; not what it is charged for. */
static void show_utilization(struct meter *m, uint64_t now_ns)
{
	uint64_t *sm = &state.region.file->hami.slots[state.slot].utilization[m->device->entry].sm;
	uint64_t passed = now_ns - m->limits.shown_at_ns;

	if (passed < SHOW_NS)
		return;
	__atomic_store_n(sm,
		m->limits.shown_at_ns ? (m->spans.busy_ns - m->limits.shown_ns) * 100 / passed : 0,
		__ATOMIC_RELAXED);
	m->limits.shown_ns = m->spans.busy_ns;
	m->limits.shown_at_ns = now_ns;
}

static void show_limits(const struct meter *m)
{
	const struct quota_limits *t = &m->limits.granted;
	unsigned state_bits = (m->limits.is_limited ? REGION_COMPUTE_LIMITED : 0) |
			      (t->is_suspended ? REGION_COMPUTE_SUSPENDED : 0) |
			      (m->limits.is_blocked ? REGION_COMPUTE_BLOCKED : 0) |
			      (m->turns.peer_count ? REGION_COMPUTE_TURNS : 0);
	uint64_t percent = m->limits.is_limited ? (t->cap_permille + 9u) / 10 : 100;

	/* relaxed: for people to read */
	atomic_store_explicit(&m->books->limits,
		(uint64_t)t->cores_permille << 48 | (uint64_t)t->cap_permille << 32 |
			(uint64_t)t->weight << 16 | (uint64_t)t->priority << 8 | state_bits,
		memory_order_relaxed);
	atomic_store_explicit(&state.region.file->hami.sm_limit_percent[m->device->entry], percent,
		memory_order_relaxed);
	atomic_store_explicit(&state.region.file->hami.priority, t->priority, memory_order_relaxed);
	atomic_store_explicit(&state.region.file->hami.slots[state.slot].status,
		m->limits.is_suspended ? HAMI_SUSPENDED : HAMI_RUNNING, memory_order_relaxed);
}

/* A limit by index whose device NVML does not tell: as little as there is, and said. */
static void find_limits(struct meter *m)
{
	/* relaxed: see heed_monitor() */
	bool is_contended = atomic_load_explicit(&state.region.file->hami.utilization_switch,
				    memory_order_relaxed) != 0;
	struct quota_limits limits;

	if (quota_compute(m->device->uuid, is_contended, &limits) < 0) {
		if (m->limits.granted.cap_permille != 1)
			log_error("a compute limit is given by index, and NVML does not tell which "
				  "device that is: 0.1 % is given",
				STR("device", m->device->uuid));
		limits = (struct quota_limits){
			.cores_permille = 1, .cap_permille = 1, .weight = 1, .priority = 9};
	}
	m->limits.granted = limits;
	m->limits.is_watched = !is_contended;
}

/* A slice without turns, or one that may not know of all others, is not lent what others leave. */
static void lower_limits(struct meter *m)
{
	struct quota_limits *limits = &m->limits.granted;

	if (m->turns.is_denied && limits->cores_permille < limits->cap_permille)
		limits->cap_permille = limits->cores_permille;
	if (m->turns.is_open && m->turns.turn.is_blind && limits->cap_permille > BLIND_PERMILLE)
		limits->cap_permille = BLIND_PERMILLE;
	m->limits.is_limited = limits->cap_permille < SHARE_WHOLE_PERMILLE;
	m->limits.is_watched = m->limits.is_watched && !m->limits.is_limited;
}

/* Finds whether work for the device has to be metered. */
static void find_metered(struct meter *m, uint64_t now_ns)
{
	bool is_metered = m->limits.is_limited || m->limits.is_suspended || m->limits.is_blocked ||
			  m->limits.is_watched || m->turns.peer_count;

	if (is_metered && m->limits.is_unmetered) {
		m->limits.unmetered_until_ns = now_ns;
		m->limits.is_backlogged = true;
	}
	m->limits.is_unmetered = !is_metered;
}

/* Reads the limits again, and finds whether work for the device has to be metered. */
static void refresh(struct meter *m, uint64_t now_ns)
{
	LOCK_SCOPE(&m->lock);
	find_limits(m);
	m->limits.is_suspended = m->limits.granted.is_suspended || signals_is_suspended();
	FAULT("meter: limits read");
	heed_monitor(m, now_ns);
	turns_poll(m, now_ns);
	lower_limits(m);
	if (m->since_ns) {
		streams_collect(m, now_ns);
		meter_say_busy_since(m, streams_begin_ns(m, now_ns));
	}
	m->limits.counted_permille = untracked_counted_permille(m, now_ns);
	m->limits.contended_percent = untracked_others_percent(m, now_ns);
	show_utilization(m, now_ns);
	show_limits(m);
	find_metered(m, now_ns);
	m->limits.is_read = true;
}

/* Work of the time in which it is not metered belongs to no batch. */
static void set_mode(uint32_t mode, uint64_t now_ns)
{
	/* relaxed, both: see gate_is_open() */
	uint32_t was = atomic_load_explicit(&gate_mode, memory_order_relaxed);

	for (int i = 0; i < STATE_ORDINALS && mode != was; i++) {
		struct device *device = state_known_device(i);

		if (device) {
			LOCK_SCOPE(&meter_of(device)->lock);
			streams_break(meter_of(device), now_ns);
		}
	}
	atomic_store_explicit(&gate_mode, mode, memory_order_relaxed);
}

static bool is_any_metered(void)
{
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		if (m->limits.is_read && !m->limits.is_unmetered)
			return true;
	}
	return false;
}

/* By what was read of all devices: one that a context came for meanwhile is not forgotten. */
static bool decide_mode(uint64_t now_ns)
{
	bool is_metered;
	LOCK_SCOPE(&mode_lock);

	is_metered = is_any_metered();
	set_mode(is_metered ? GATE_ON : GATE_POLL, now_ns);
	return is_metered;
}

/* When work is metered: what came before is all that lies in the contexts then. */
static bool has_backlog(void)
{
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		if (m->limits.is_backlogged)
			return true;
	}
	return false;
}

/* Its work is not for others to charge (slot.h). */
static void say_looked(uint64_t now_ns)
{
	/* relaxed: pairs with the load in slot.c, which is late by seconds */
	if (state.region.file)
		atomic_store_explicit(&state.region.file->own.looked_ns[state.slot], now_ns,
			memory_order_relaxed);
}

static void look_for_dead(void)
{
	static _Atomic uint64_t next_ns;

	if (state.region.file && clock_is_due(&next_ns, DEAD_NS))
		slot_charge_dead(&state.region, state.slot);
}

static bool was_read(struct meter *m)
{
	LOCK_SCOPE(&m->lock);
	return m->limits.is_read;
}

void limits_begin(struct device *device)
{
	struct meter *m = meter_of(device);
	uint64_t now_ns = clock_now_ns();

	if (was_read(m))
		return;
	refresh(m, now_ns);
	(void)decide_mode(now_ns);
}

void limits_reset_after_fork(void)
{
	mode_lock = (struct lock)LOCK_INIT;
}

void limits_poll(void)
{
	uint64_t now_ns;

	/* relaxed: a poll too early or late does no harm */
	if (LIKELY(clock_ticks() < atomic_load_explicit(&gate_next_poll, memory_order_relaxed)))
		return;
	if (!poll_is_due(&now_ns))
		return;
	state_refresh_limits(false);
	say_looked(now_ns);
	look_for_dead();
	for (int i = 0; i < STATE_ORDINALS; i++) {
		struct device *device = state_known_device(i);

		if (device)
			refresh(meter_of(device), now_ns);
	}
	if (decide_mode(now_ns) && has_backlog())
		backlog_find();
}
