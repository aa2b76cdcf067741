/* SPDX-License-Identifier: Apache-2.0 */
/* A meter's credit, and the slice's budgets behind it. */
#include "tenant/compute/credit.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/fault.h"
#include "policy/budget.h"
#include "policy/owed.h"
#include "policy/share.h"
#include "tenant/compute/meters.h"

/*
 * Budget that a process takes out of the slice's at once. With each filling the device begins with an empty
 * queue, and the program after a sleep; that costs about 0.1 ms (H200, PyTorch), and so 2 % of this.
 */
#define FILLING_NS 4000000

/* Overdraft: streams may take so much on top of a credit that is filled for the first of them. */
#define OVERDRAFT_NS 4000000

/* About a turn's time: beyond it a slice borrows, until it has paid all of it back. */
#define BORROWED_NS 10000000

/* The most that it has to pay back: more than one kernel that a turn can be held for (TURN_LEASE_NS). */
#define BORROWED_MOST_NS 250000000

#define FEELS_OWED_NS	 UINT64_C(20000000) /* waiting for honest slices costs less */

/* Who works asks about credit more often. */
#define ASKED_NS UINT64_C(50000000)

/* A budget that lacks no more than this is full. */
#define FULL_NS 1000

/* Streams that begin within a ms begin together. */
#define TOGETHER_NS 1000000u

/* Work beside a stream's that is paid for may end so much later: it is given later by what a timer is late. */
#define BESIDE_NS 500000u

/* All streams together may be so far ahead, with that: as much may turn out to come one after the other. */
#define BESIDE_MOST_NS UINT64_C(128000000)

/* What the slice gets that would be others' else. */
static uint64_t paid_permille(const struct meter *m)
{
	return SHARE_WHOLE_PERMILLE - credit_due_permille(m);
}

/* For how long the device has worked for the slice. relaxed: a moment late does no harm */
static uint64_t served_ns(const struct meter *m)
{
	return atomic_load_explicit(&m->books->elapsed_ns, memory_order_relaxed);
}

/* What its processes together could not have. relaxed: as above */
static uint64_t slice_owed_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(&m->books->owed, memory_order_relaxed);

	return word ? owed_ns(word, served_ns(m), paid_permille(m), now_ns) : 0;
}

/* What a slice cannot have while it waits for others is saved up beyond its burst, whichever of its processes waits. */
static uint64_t most_ns(const struct meter *m, uint64_t now_ns)
{
	return m->limits.granted.burst_ns + max_u64(m->credit.owed_ns, slice_owed_ns(m, now_ns));
}

static struct budget_rate ceiling_rate(const struct meter *m, uint64_t now_ns)
{
	return (struct budget_rate){
		.permille = m->limits.granted.cap_permille, .burst_ns = most_ns(m, now_ns)};
}

/*
 * Where slices take turns, what changing over takes is everybody's loss in proportion: who has had so much of its
 * cores has had its part, and gives way to who has not.
 */
#define TURNS_PERCENT 98 /* H200: 97.6 between two, 95 among eight */
#define DUE_PERCENT   97 /* of its cores, for less than which others owe it the rest */

static struct budget_rate sure_rate(const struct meter *m, uint64_t now_ns)
{
	uint32_t permille = m->limits.granted.cores_permille;

	if (m->turns.peer_count)
		permille = permille * TURNS_PERCENT / 100;
	return (struct budget_rate){.permille = permille, .burst_ns = most_ns(m, now_ns)};
}

/* relaxed: each word is complete in itself */
static void spend(_Atomic uint64_t *word, const struct budget_rate *rate, uint64_t since_ns,
	uint64_t now_ns, int64_t cost_ns)
{
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(word, &seen,
		budget_spend_since(seen, rate, since_ns, now_ns, cost_ns), memory_order_relaxed,
		memory_order_relaxed))
		;
}

static void say_advance(const struct meter *m, int64_t ns)
{
	/* release: what is charged before is seen by who clears the slot of a process that has ended (slot.c) */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].advance_ns[m->device->entry], ns,
		memory_order_release);
}

static void publish_advance(const struct meter *m)
{
	const struct credit *c = &m->credit;

	say_advance(m, m->limits.is_limited ? c->balance_ns + c->ordered_ns + c->reserved_ns : 0);
}

void credit_hide(struct meter *m)
{
	say_advance(m, 0);
}

/* The credit's debt is the slice's; without a limit nothing is owed, and nothing ordered. */
static void flush(struct meter *m, uint64_t since_ns, uint64_t now_ns)
{
	struct budget_rate rate = ceiling_rate(m, now_ns);

	if (m->limits.is_limited) {
		spend(&m->books->ceiling, &rate, since_ns, now_ns, -m->credit.balance_ns);
	} else {
		spend(&m->books->ceiling, &rate, since_ns, now_ns, -m->credit.ordered_ns);
		m->credit.ordered_ns = 0;
	}
	m->credit.balance_ns = 0;
	m->credit.paid_until_ns = 0;
	publish_advance(m);
}

/*
 * Finds how much the slice has saved up, and whether it borrows. It does not borrow at once, or two that both have just what they are sure
 * of would give way to each other all the time.
 */
static void find_saved(struct meter *m, uint64_t now_ns)
{
	struct credit *c = &m->credit;
	struct budget_rate rate = sure_rate(m, now_ns);
	/* relaxed: as in spend() */
	uint64_t word = atomic_load_explicit(&m->books->budget, memory_order_relaxed);

	c->saved_ns = rate.permille ? budget_balance_ns(word, &rate, now_ns) : 0;
	c->is_borrowing = m->limits.granted.cores_permille != m->limits.granted.cap_permille &&
			  (!rate.permille || c->saved_ns < (c->is_borrowing ? 0 : -BORROWED_NS));
}

/* relaxed: as in spend() */
static uint64_t budget_wait(const struct meter *m, uint64_t now_ns, int64_t more_ns)
{
	struct budget_rate rate = ceiling_rate(m, now_ns);
	uint64_t word = atomic_load_explicit(&m->books->ceiling, memory_order_relaxed);

	return budget_wait_ns(budget_spend(word, &rate, now_ns, -more_ns), &rate, now_ns);
}

/* What the slice is to have of the device's time beside others: what changing over takes is everybody's loss. */
uint64_t credit_due_permille(const struct meter *m)
{
	uint64_t permille = m->limits.granted.cores_permille;

	/* A slice without a promise has its equal part. */
	if (permille >= SHARE_WHOLE_PERMILLE)
		permille = SHARE_WHOLE_PERMILLE / (m->turns.peer_count + 1);
	return permille * DUE_PERCENT / 100;
}

/* relaxed: as in spend() */
static bool put_owed(struct meter *m, uint64_t *seen, uint64_t word)
{
	return atomic_compare_exchange_weak_explicit(
		&m->books->owed, seen, word, memory_order_relaxed, memory_order_relaxed);
}

static void owe(struct credit *c, uint64_t ns)
{
	c->owed_ns = min_u64(c->owed_ns + ns, OWED_MOST_NS);
	c->lack_ns += ns;
}

/* What went to others meanwhile is owed as a whole. */
static void owe_overlap(struct meter *m, uint64_t ns, uint64_t now_ns)
{
	/* relaxed: as in slice_owed_ns() */
	uint64_t seen = atomic_load_explicit(&m->books->owed, memory_order_relaxed);

	while (!put_owed(m, &seen, owed_add(seen, served_ns(m), paid_permille(m), now_ns, ns)))
		;
	owe(&m->credit, ns);
}

static void have_back(struct credit *c, uint64_t ns)
{
	c->owed_ns -= ns < c->owed_ns ? ns : c->owed_ns;
	c->lack_ns -= ns < c->lack_ns ? ns : c->lack_ns;
}

/* While any process of the slice works it is given what goes to others otherwise. */
static void find_owed(struct meter *m, uint64_t now_ns)
{
	uint64_t served = served_ns(m);
	uint64_t paid_ns = (served - m->credit.served_ns) * paid_permille(m) / SHARE_WHOLE_PERMILLE;

	m->credit.served_ns = served;
	have_back(&m->credit, paid_ns);
	m->credit.is_owed &= m->credit.owed_ns != 0 && !m->credit.is_borrowing;
	/* By the waits of another process. */
	m->credit.is_owed |= !m->credit.is_borrowing && slice_owed_ns(m, now_ns) > FEELS_OWED_NS;
}

void credit_wait(struct meter *m, uint64_t waited_ns)
{
	uint64_t due = credit_due_permille(m), now_ns = clock_now_ns();
	/* relaxed: as in slice_owed_ns() */
	uint64_t seen = atomic_load_explicit(&m->books->owed, memory_order_relaxed);

	find_owed(m, now_ns);
	/* Who has had more than its cores waits until others have theirs. */
	if (m->credit.is_borrowing)
		return;
	while (!put_owed(m, &seen, owed_wait(seen, m->credit.served_ns, due, now_ns, waited_ns)))
		;
	owe(&m->credit, waited_ns * due / SHARE_WHOLE_PERMILLE);
	m->credit.is_owed |= m->credit.owed_ns > FEELS_OWED_NS;
}

void credit_blamed(struct meter *m)
{
	m->credit.lack_ns = 0;
}

void credit_return(struct meter *m, int64_t ns, uint64_t now_ns)
{
	struct budget_rate rate = sure_rate(m, now_ns);

	spend(&m->books->budget, &rate, now_ns, now_ns, -ns);
}

/* Of a pause of the process: its slice was not idle while another one waited or worked. */
static uint64_t idle_of_slice_ns(const struct meter *m, uint64_t idle_ns, uint64_t now_ns)
{
	uint64_t served = served_ns(m) - m->credit.served_ns;

	if (!m->turns.is_open || turn_has_others(&m->turns.turn, now_ns))
		return 0;
	return served < idle_ns ? idle_ns - served : 0;
}

void credit_pause(struct meter *m, uint64_t pause_ns, uint64_t idle_ns, uint64_t now_ns)
{
	struct budget_rate sure = sure_rate(m, now_ns), ceiling = ceiling_rate(m, now_ns);
	/* relaxed, both: as in owe() */
	uint64_t seen = atomic_load_explicit(&m->books->owed, memory_order_relaxed), kept_ns = 0;

	if (!m->turns.peer_count)
		return;
	while (!put_owed(m, &seen, owed_pause(seen, idle_of_slice_ns(m, idle_ns, now_ns), now_ns)))
		;
	/* What was saved up long before the pause the slice's other processes may have used. */
	if (m->credit.asked_ns + pause_ns + ASKED_NS > now_ns)
		kept_ns = m->credit.kept_ns;
	kept_ns = max_u64(kept_ns, slice_owed_ns(m, now_ns));
	sure.burst_ns = ceiling.burst_ns = m->limits.granted.burst_ns + kept_ns;
	spend(&m->books->budget, &sure, now_ns, now_ns, 0);
	spend(&m->books->ceiling, &ceiling, now_ns, now_ns, 0);
	have_back(&m->credit, idle_ns);
}

/* How much is saved up beyond the burst. */
static void find_kept(struct meter *m, uint64_t now_ns)
{
	struct budget_rate rate = ceiling_rate(m, now_ns);
	/* relaxed: as in spend() */
	uint64_t word = atomic_load_explicit(&m->books->ceiling, memory_order_relaxed);
	int64_t kept_ns =
		budget_balance_ns(word, &rate, now_ns) - (int64_t)m->limits.granted.burst_ns;

	m->credit.kept_ns = kept_ns > 0 ? (uint64_t)kept_ns : 0;
	m->credit.asked_ns = now_ns;
}

/*
 * Streams that begin together may overlap, and what overlaps is charged once. So with each filling of the
 * credit every stream may open a batch, by overdraft.
 */
static bool may_overdraw(const struct meter *m, const struct stream_state *s, uint64_t now_ns)
{
	return now_ns < m->credit.filled_ns + TOGETHER_NS && s->filling != m->credit.filling &&
	       m->credit.balance_ns > -OVERDRAFT_NS;
}

int64_t credit_reserve_of(const struct meter *m, uint64_t ns)
{
	return (int64_t)(ns * m->spans.overlap_permille / 1000 * m->limits.counted_permille / 1000);
}

/* A batch that begins with such a piece. */
static uint64_t batch_with(uint64_t ns)
{
	return max_u64(ns, METER_BATCH_NS);
}

/* When the stream's work should end with it. */
static uint64_t end_with(const struct stream_state *s, uint64_t ns, uint64_t now_ns)
{
	return max_u64(s->drained_ns, now_ns) + batch_with(ns);
}

/*
 * While a stream works for which the credit has paid, others may work beside it, by overdraft: of what they take together
 * only that is charged.
 */
static bool is_beside(const struct meter *m, const struct stream_state *s, uint64_t ns,
	uint64_t others_ns, uint64_t now_ns)
{
	return others_ns && others_ns < BESIDE_MOST_NS &&
	       end_with(s, ns, now_ns) <= m->credit.paid_until_ns + BESIDE_NS &&
	       credit_reserve_of(m, batch_with(ns)) < m->credit.balance_ns + OVERDRAFT_NS;
}

/*
 * With turns a filling is what the slice may use of a round of all: in smaller ones each would end the slice's turn, and
 * who owes a little would change over more often from then on, and owe that, too.
 */
static int64_t filling_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t turn_ns = m->turns.turn.quantum_ns;
	uint64_t round_ns = turn_ns * (m->turns.peer_count + 1);
	uint64_t ns = round_ns * m->limits.granted.cap_permille / 1000;

	/* The driver takes samples at regular times (policy/untracked.h). */
	if (m->limits.contended_percent)
		return FILLING_NS * 3 / 4 + (int64_t)(hash_u64(now_ns) % (FILLING_NS / 2));
	if (!m->turns.peer_count || ns < FILLING_NS)
		return FILLING_NS;
	return (int64_t)(ns < turn_ns ? ns : turn_ns);
}

/* How often a process of the slice began what takes more than it had taken in advance. */
static uint64_t overdrafts(const struct meter *m)
{
	/* acquire: what was counted is in the budget */
	return atomic_load_explicit(&m->books->turn.overdrafts, memory_order_acquire);
}

/*
 * What was ordered before another process overdrew its credit comes after that: as many processes as there are
 * would overdraw as many times as much, one after the other.
 */
static void order_anew(struct meter *m, const struct budget_rate *rate, uint64_t now_ns)
{
	struct credit *c = &m->credit;

	if (overdrafts(m) == c->overdrafts || c->balance_ns + c->ordered_ns <= 0)
		return;
	spend(&m->books->ceiling, rate, now_ns, now_ns, -(c->balance_ns + c->ordered_ns));
	c->balance_ns = c->ordered_ns = 0;
	publish_advance(m);
}

static void let_begin(struct credit *c, struct stream_state *s, uint64_t ns, uint64_t now_ns)
{
	uint64_t end_ns = end_with(s, ns, now_ns);

	s->filling = c->filling;
	if (c->balance_ns > 0 && end_ns > c->paid_until_ns)
		c->paid_until_ns = end_ns;
}

static void fill(struct meter *m, uint64_t now_ns)
{
	m->credit.balance_ns += m->credit.ordered_ns;
	m->credit.ordered_ns = 0;
	m->credit.filled_ns = now_ns;
	m->credit.filling++;
}

/*
 * A filling that is left when the slice has saved up all that it may is a part of that no more: many processes would keep
 * as many times the burst.
 */
static void drop_hoarded(struct meter *m, const struct budget_rate *rate, uint64_t now_ns)
{
	/* relaxed, all: as in spend() */
	uint64_t word = atomic_load_explicit(&m->books->ceiling, memory_order_relaxed);

	if (budget_balance_ns(word, rate, now_ns) + FULL_NS >= (int64_t)rate->burst_ns)
		atomic_store_explicit(&m->books->full_ns, now_ns, memory_order_relaxed);
	if (m->credit.balance_ns <= 0 || atomic_load_explicit(&m->books->full_ns,
						 memory_order_relaxed) <= m->credit.filled_ns)
		return;
	m->credit.balance_ns = 0;
	publish_advance(m);
}

uint64_t credit_ready_ns(
	struct meter *m, struct stream_state *s, uint64_t ns, uint64_t others_ns, uint64_t now_ns)
{
	struct budget_rate rate = ceiling_rate(m, now_ns);
	uint64_t ready_ns;

	find_saved(m, now_ns);
	find_kept(m, now_ns);
	find_owed(m, now_ns);
	if (!m->limits.is_limited) {
		if (m->credit.balance_ns || m->credit.ordered_ns)
			flush(m, now_ns, now_ns);
		return 0;
	}
	drop_hoarded(m, &rate, now_ns);
	order_anew(m, &rate, now_ns);
	if (m->credit.balance_ns > 0 || may_overdraw(m, s, now_ns) ||
		is_beside(m, s, ns, others_ns, now_ns)) {
		let_begin(&m->credit, s, ns, now_ns);
		return 0;
	}
	ready_ns = now_ns + budget_wait(m, now_ns, m->credit.ordered_ns + m->credit.running_ns);
	if (!m->credit.ordered_ns) {
		m->credit.ordered_ns = filling_ns(m, now_ns) - m->credit.balance_ns;
		m->credit.ready_ns = ready_ns;
		m->credit.overdrafts = overdrafts(m);
		spend(&m->books->ceiling, &rate, now_ns, now_ns, m->credit.ordered_ns);
		publish_advance(m);
		FAULT("meter: ordered");
	} else if (ready_ns < m->credit.ready_ns) {
		m->credit.ready_ns = ready_ns;
	}
	if (now_ns < m->credit.ready_ns)
		return m->credit.ready_ns;
	fill(m, now_ns);
	let_begin(&m->credit, s, ns, now_ns);
	return 0;
}

bool credit_overdraw(
	struct meter *m, uint64_t ns, int64_t reserve_ns, bool is_unknown, uint64_t now_ns)
{
	struct credit *c = &m->credit;
	struct budget_rate rate = ceiling_rate(m, now_ns);
	uint64_t seen = c->overdrafts;
	int64_t more_ns = reserve_ns > c->balance_ns ? reserve_ns - c->balance_ns : 0;

	if (!m->limits.is_limited)
		return true;
	if ((int64_t)ns <= c->balance_ns + OVERDRAFT_NS)
		return !is_unknown || overdrafts(m) == seen;
	/* Before it is counted: who orders anew because of that comes behind it. */
	spend(&m->books->ceiling, &rate, now_ns, now_ns, more_ns);
	/* release: pairs with the acquire in overdrafts(). A count and no time: clocks are asked at different moments. */
	if (!atomic_compare_exchange_strong_explicit(&m->books->turn.overdrafts, &seen, seen + 1,
		    memory_order_release, memory_order_relaxed)) {
		spend(&m->books->ceiling, &rate, now_ns, now_ns, -more_ns);
		return false;
	}
	c->overdrafts++;
	c->balance_ns += more_ns;
	publish_advance(m);
	return true;
}

void credit_reserve(struct meter *m, int64_t ns, uint64_t now_ns)
{
	m->credit.balance_ns -= ns;
	m->credit.reserved_ns += ns;
	if (UNLIKELY(m->credit.balance_ns < -OVERDRAFT_NS))
		flush(m, now_ns, now_ns);
}

/*
 * How much of the time was the slice's own. Beside a turn that it has waited for as long as it could the driver gives the device to both by equal
 * parts: the other half is others', which it could not have. Else it would lose twice by a kernel that cannot be cut.
 */
static int64_t own_part(struct meter *m, int64_t took_ns, uint64_t now_ns)
{
	int64_t others_ns = took_ns / 2;

	if (took_ns <= 0 || !m->turns.is_open || !turn_is_overlapped(&m->turns.turn, now_ns))
		return took_ns;
	if (!m->credit.is_borrowing)
		owe_overlap(m, (uint64_t)others_ns, now_ns);
	return took_ns - others_ns;
}

/*
 * What nobody else wanted meanwhile is not taken of what the slice is sure of: it would owe it to those who come later, and be
 * behind them for as long as it was alone.
 */
static void spend_sure(struct meter *m, uint64_t since_ns, uint64_t now_ns, int64_t took_ns)
{
	int64_t own_ns = own_part(m, took_ns, now_ns);
	struct budget_rate rate = sure_rate(m, now_ns);
	/* relaxed: as in spend() */
	uint64_t word = atomic_load_explicit(&m->books->budget, memory_order_relaxed);
	int64_t most_ns;

	/* A thread that waits for the turn has it to itself, and others have the device. */
	m->credit.is_left = m->turns.is_open && !m->turns.is_awaited &&
			    !turn_is_contended(&m->turns.turn, since_ns, now_ns);
	most_ns = budget_balance_ns(word, &rate, now_ns) + BORROWED_MOST_NS;
	if (own_ns > most_ns)
		own_ns = most_ns > 0 ? most_ns : 0;
	spend(&m->books->budget, &rate, since_ns, now_ns, m->credit.is_left ? 0 : own_ns);
}

void credit_charge(
	struct meter *m, int64_t reserved_ns, int64_t took_ns, uint64_t since_ns, uint64_t now_ns)
{
	struct budget_rate ceiling = ceiling_rate(m, now_ns);

	m->credit.reserved_ns -= reserved_ns;
	/* The credit pays for an estimate that was too low; what comes back pays the slice's debts first. */
	if (m->limits.is_limited && took_ns > reserved_ns)
		m->credit.balance_ns -= took_ns - reserved_ns;
	else if (m->limits.is_limited)
		spend(&m->books->ceiling, &ceiling, since_ns, now_ns, took_ns - reserved_ns);
	if (m->credit.balance_ns < -OVERDRAFT_NS) {
		flush(m, since_ns, now_ns);
		/* release: as in credit_overdraw(). What nobody knew of comes before what others have ordered, too. */
		if (m->limits.is_limited)
			atomic_fetch_add_explicit(
				&m->books->turn.overdrafts, 1, memory_order_release);
	} else {
		publish_advance(m);
	}
	spend_sure(m, since_ns, now_ns, took_ns);
	find_saved(m, now_ns);
}

uint64_t credit_lent_ns(const struct meter *m, uint64_t charged_ns)
{
	uint32_t cores = m->limits.granted.cores_permille;

	if (m->credit.is_borrowing)
		return charged_ns;
	return m->credit.is_left && cores < SHARE_WHOLE_PERMILLE
		       ? charged_ns * (SHARE_WHOLE_PERMILLE - cores) / SHARE_WHOLE_PERMILLE
		       : 0;
}

void credit_charge_running(struct meter *m, int64_t took_ns, uint64_t since_ns, uint64_t now_ns)
{
	struct budget_rate ceiling = ceiling_rate(m, now_ns);

	if (m->limits.is_limited)
		spend(&m->books->ceiling, &ceiling, since_ns, now_ns, took_ns);
	spend_sure(m, since_ns, now_ns, took_ns);
	m->credit.running_ns += took_ns;
}

void credit_end_running(struct meter *m, int64_t took_ns, uint64_t now_ns)
{
	struct budget_rate ceiling = ceiling_rate(m, now_ns);
	int64_t paid_ns = took_ns < m->credit.balance_ns ? took_ns : m->credit.balance_ns;

	m->credit.running_ns -= took_ns;
	if (!m->limits.is_limited || paid_ns <= 0)
		return;
	m->credit.balance_ns -= paid_ns;
	/* First, so that where we die in between nothing comes back twice. */
	publish_advance(m);
	spend(&m->books->ceiling, &ceiling, now_ns, now_ns, -paid_ns);
}
