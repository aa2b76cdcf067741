/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of two threads each spend, give back, and mark busy time in one device's books, and are killed at
 * any moment. From outside: what was given never exceeds rate times time, the burst, and one credit for each
 * thread; busy time only grows, and no faster than the clock; and nobody who lives waits for ever.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "policy/budget.h"
#include "region/busy.h"
#include "tests/stress/random.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

#define MS	   UINT64_C(1000000)
#define PROCESSES  3u
#define THREADS	   2u
#define WORKERS	   (PROCESSES * THREADS)
#define CREDIT_NS  MS
#define PERMILLE   300u
#define BURST_NS   (10 * MS)
#define EXTRA_NS   (2 * MS) /* by which a piece may take longer than was reserved */
#define SECONDS	   2u
#define GRAIN_NS   100000u /* of waits */
#define PATIENCE_S 60u

static const struct budget_rate rate = {.permille = PERMILLE, .burst_ns = BURST_NS};

struct shared {
	struct region_compute books;
	_Atomic int64_t given_ns;
	_Atomic uint64_t credits[WORKERS]; /* how many each has had */
	_Atomic bool is_over;
};
static struct shared *shared;

struct worker {
	unsigned number;
	struct random random;
};

/* The word before, of the exchange that succeeded. */
static uint64_t spend(uint64_t now_ns, int64_t cost_ns)
{
	uint64_t seen = atomic_load(&shared->books.ceiling);

	while (!atomic_compare_exchange_weak(
		&shared->books.ceiling, &seen, budget_spend(seen, &rate, now_ns, cost_ns)))
		;
	return seen;
}

static void rest(uint64_t ns)
{
	struct timespec t = {.tv_nsec = (long)ns};

	nanosleep(&t, NULL);
}

/* Orders a credit, and waits until what was owed before is paid. */
static void take_credit(struct worker *w)
{
	uint64_t now_ns = clock_now_ns(), before = spend(now_ns, CREDIT_NS);
	uint64_t ready_ns = now_ns + budget_wait_ns(before, &rate, now_ns);

	while (clock_now_ns() < ready_ns && !atomic_load(&shared->is_over))
		rest(GRAIN_NS);
	atomic_fetch_add(&shared->given_ns, CREDIT_NS);
	atomic_fetch_add(&shared->credits[w->number], 1);
}

/*
 * The credit is worked off, in a piece or several, some of it at the same time as others'; what is not charged
 * is given back, and what is charged beyond is owed. What is given back is told before, and what is owed
 * after: who dies between has told too little.
 */
static void work_off(struct worker *w)
{
	int64_t left_ns = CREDIT_NS;

	while (left_ns > 0) {
		uint64_t length_ns = 20000 + random_below(&w->random, (unsigned)CREDIT_NS);
		uint64_t end_ns = clock_now_ns() + random_below(&w->random, 300000), fresh;

		fresh = busy_mark(&shared->books, end_ns - length_ns, end_ns);
		atomic_fetch_add(&shared->books.busy_ns, fresh);
		left_ns -= (int64_t)(fresh > 20000 ? fresh : 20000);
		if (random_below(&w->random, 4) == 0)
			break;
	}
	if (left_ns > 0)
		atomic_fetch_sub(&shared->given_ns, left_ns);
	spend(clock_now_ns(), -left_ns);
	if (left_ns < 0)
		atomic_fetch_sub(&shared->given_ns, left_ns);
}

static void *work(void *argument)
{
	struct worker *w = argument;

	while (!atomic_load(&shared->is_over)) {
		take_credit(w);
		work_off(w);
	}
	return NULL;
}

static int live(int fd, void *argument)
{
	struct worker *workers = argument;
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, &workers[1]))
		return 1;
	work(&workers[0]);
	return pthread_join(thread, NULL);
}

struct outside {
	uint64_t seed, begun_ns, seen_busy_ns;
	unsigned deaths;
	struct child children[PROCESSES];
	struct worker workers[PROCESSES][THREADS];
};

static void start(struct outside *o, unsigned process)
{
	for (unsigned i = 0; i < THREADS; i++)
		o->workers[process][i] = (struct worker){.number = process * THREADS + i,
			.random = random_stream(
				o->seed, o->deaths * WORKERS + process * THREADS + i)};
	o->children[process] = child_start(live, o->workers[process]);
	assert_true(o->children[process].pid > 0);
}

static void look(struct outside *o)
{
	/* In this order: what is given later is not counted. */
	int64_t given_ns = atomic_load(&shared->given_ns);
	uint64_t busy_ns = atomic_load(&shared->books.busy_ns);
	uint64_t passed_ns = clock_now_ns() - o->begun_ns;
	uint64_t most_ns =
		passed_ns * PERMILLE / 1000 + BURST_NS + WORKERS * (CREDIT_NS + EXTRA_NS);

	if (given_ns > (int64_t)most_ns)
		print_message("after %llu ns %lld ns were given\n", (unsigned long long)passed_ns,
			(long long)given_ns);
	assert_true(given_ns <= (int64_t)most_ns);
	assert_true(busy_ns >= o->seen_busy_ns);
	/* Begun up to a piece before, told up to 0.3 ms before; ends are rounded. */
	assert_true(busy_ns <= passed_ns + passed_ns / 20 + 2 * CREDIT_NS);
	o->seen_busy_ns = busy_ns;
}

/* Everybody who lives gets another credit. */
static void expect_all_served(struct outside *o)
{
	uint64_t deadline_ns = clock_now_ns() + PATIENCE_S * UINT64_C(1000000000);
	uint64_t had[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++)
		had[i] = atomic_load(&shared->credits[i]);
	for (unsigned i = 0; i < WORKERS; i++) {
		while (atomic_load(&shared->credits[i]) < had[i] + 2 &&
			clock_now_ns() < deadline_ns) {
			rest(MS);
			look(o);
		}
		assert_true(atomic_load(&shared->credits[i]) >= had[i] + 2);
	}
}

static uint64_t run_ns(void)
{
	const char *text = getenv("STRESS_SECONDS");

	return (text ? strtoull(text, NULL, 10) : SECONDS) * UINT64_C(1000000000);
}

static void no_death_gives_time_away_or_stops_the_others(void **state)
{
	struct outside o = {.seed = random_seed()};
	struct random random = random_stream(o.seed, 1000000);
	uint64_t end_ns;

	shared = child_shared_memory(sizeof(*shared));
	assert_non_null(shared);
	o.begun_ns = clock_now_ns();
	end_ns = o.begun_ns + run_ns();
	spend(o.begun_ns, 0);
	for (unsigned i = 0; i < PROCESSES; i++)
		start(&o, i);
	while (clock_now_ns() < end_ns) {
		/* Each death may take some credits with it: seldom enough that there is something left. */
		uint64_t kill_ns = clock_now_ns() + (20 + random_below(&random, 30)) * MS;
		unsigned victim = random_below(&random, PROCESSES);

		while (clock_now_ns() < kill_ns) {
			rest(GRAIN_NS + random_below(&random, 500000));
			look(&o);
		}
		assert_int_equal(child_kill(&o.children[victim]), CHILD_SIGNALLED + SIGKILL);
		o.deaths++;
		start(&o, victim);
	}
	expect_all_served(&o);
	atomic_store(&shared->is_over, true);
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(child_wait(&o.children[i]), 0);
	look(&o);
	print_message("%u deaths, %lld ms given in %llu\n", o.deaths,
		(long long)(atomic_load(&shared->given_ns) / 1000000),
		(unsigned long long)((clock_now_ns() - o.begun_ns) / MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_death_gives_time_away_or_stops_the_others),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
