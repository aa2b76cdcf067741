/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes of two threads charge and give back at random. Their parent kills one after the
 * other with SIGKILL, starts new ones, and all the time looks at the total through a mapping of its
 * own: it must never be above the limit. At the end the living stand still and say what they hold:
 * the books must say the same, and nothing when they are gone.
 *
 * STRESS_SECONDS says for how long (5 unless told).
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/stress/random.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define WORKERS	    8
#define THREADS	    2
#define DEVICES	    2u
#define LIMIT	    1000u
#define LARGEST	    200u /* units of one charge */
#define CHARGES	    16	 /* that a thread holds at most */
#define KILL_NS	    3000000u
#define PATIENCE_NS UINT64_C(30000000000)

struct plan {
	const char *path;
	uint64_t seed;
	_Atomic bool *is_over;
};

struct worker {
	const struct plan *plan;
	struct region region;
	unsigned slot;
	struct lock reaper;
	_Atomic uint64_t held[DEVICES];
	_Atomic bool has_failed;
};

struct thread {
	struct worker *worker;
	struct random random;
	struct {
		unsigned device, units;
	} charges[CHARGES];
	unsigned count;
};

static void try_to_reap(struct worker *w)
{
	unsigned reaped;

	if (!lock_try(&w->reaper))
		return;
	if (slot_reap(&w->region, &reaped) != 0)
		atomic_store(&w->has_failed, true);
	lock_leave(&w->reaper);
	for (unsigned d = 0; d < DEVICES; d++)
		if (ledger_settle(w->region.file, d) != 0)
			continue;
}

static void take_some(struct thread *t)
{
	struct worker *w = t->worker;
	unsigned device = random_below(&t->random, DEVICES);
	unsigned units = 1 + random_below(&t->random, LARGEST);

	if (ledger_charge(w->region.file, w->slot, device, units, LIMIT) == 0) {
		t->charges[t->count].device = device;
		t->charges[t->count++].units = units;
	} else if (random_below(&t->random, 64) == 0) {
		try_to_reap(w);
	}
}

static void give_some_back(struct thread *t)
{
	unsigned i = random_below(&t->random, t->count);

	ledger_uncharge(
		t->worker->region.file, t->worker->slot, t->charges[i].device, t->charges[i].units);
	t->charges[i] = t->charges[--t->count];
}

static void *work_in_thread(void *argument)
{
	struct thread *t = argument;

	/* relaxed: only that it is seen some time */
	while (!atomic_load_explicit(t->worker->plan->is_over, memory_order_relaxed)) {
		if (t->count < CHARGES && random_below(&t->random, 2))
			take_some(t);
		else if (t->count > 0)
			give_some_back(t);
	}
	for (unsigned i = 0; i < t->count; i++)
		atomic_fetch_add(&t->worker->held[t->charges[i].device], t->charges[i].units);
	return NULL;
}

/* Works until it is over, then says its slot and what it holds, and waits to be let go. */
static int work(int fd, void *argument)
{
	struct worker w = {.plan = argument, .region = REGION_NULL, .reaper = LOCK_INIT};
	struct thread threads[THREADS] = {{.worker = &w}, {.worker = &w}};
	pthread_t ids[THREADS];

	if (region_open(w.plan->path, &w.region) != 0 || slot_claim(&w.region, &w.slot) != 0)
		return 1;
	region_drop_fd(&w.region);
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].random = random_stream(w.plan->seed, (uint64_t)getpid() * THREADS + i);
		if (pthread_create(&ids[i], NULL, work_in_thread, &threads[i]) != 0)
			return 2;
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	if (atomic_load(&w.has_failed))
		return 3;
	child_say(fd, w.slot);
	for (unsigned d = 0; d < DEVICES; d++)
		child_say(fd, atomic_load(&w.held[d]));
	child_hear(fd);
	return 0;
}

/* The total's words through a mapping that the code under test knows nothing of. */
static const struct region_file *observe(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, sizeof(struct region_file), PROT_READ, MAP_SHARED, fd, 0);

	assert_true(fd >= 0 && at != MAP_FAILED);
	close(fd);
	return at;
}

static unsigned seconds_to_run(void)
{
	const char *text = getenv("STRESS_SECONDS");

	return text ? (unsigned)strtoul(text, NULL, 10) : 5;
}

/* Kills and starts workers until the time is over, and looks as often as it can. */
static void soak(struct child *workers, struct plan *plan, const struct region_file *seen)
{
	uint64_t now = clock_now_ns(), end = now + seconds_to_run() * UINT64_C(1000000000);
	uint64_t next_kill = now, looks = 0, deaths = 0;
	struct random random = random_stream(plan->seed, 0);
	uint32_t highest = 0;

	/* on a busy machine those that were just started need longer */
	for (; now < end || (highest <= LIMIT / 2 && now < end + PATIENCE_NS);
		now = clock_now_ns(), looks++) {
		for (unsigned d = 0; d < DEVICES; d++) {
			uint32_t used = ledger_used_units(seen, d);

			assert_true(used <= LIMIT);
			highest = used > highest ? used : highest;
		}
		if (now < next_kill || (deaths && now >= end))
			continue;
		next_kill = now + 1 + random_below(&random, 2 * KILL_NS);
		deaths++;
		struct child *c = &workers[random_below(&random, WORKERS)];

		assert_int_equal(child_kill(c), CHILD_SIGNALLED + SIGKILL);
		*c = child_start(work, plan);
	}
	print_message("%llu looks, %llu deaths, at most %u of %u units in use\n",
		(unsigned long long)looks, (unsigned long long)deaths, highest, LIMIT);
	assert_true(highest > LIMIT / 2);
	assert_true(deaths > 0);
}

static void assert_books(struct region *region, const uint64_t *held)
{
	unsigned reaped;

	assert_int_equal(slot_reap(region, &reaped), 0);
	for (unsigned d = 0; d < DEVICES; d++) {
		assert_true(ledger_used_units(region->file, d) >= held[d]);
		assert_int_equal(ledger_settle(region->file, d), 0);
		assert_int_equal(ledger_used_units(region->file, d), held[d]);
	}
}

static void no_death_takes_more_than_the_limit_or_leaves_anything_behind(void **state)
{
	struct scratch *s = *state;
	struct plan plan = {
		.path = s->file, .seed = random_seed(), .is_over = child_shared_memory(4096)};
	uint64_t held[DEVICES] = {0};
	struct child workers[WORKERS];
	struct region region = REGION_NULL;
	const struct region_file *seen;

	assert_int_equal(region_open(s->file, &region), 0);
	region_drop_fd(&region);
	seen = observe(s->file);
	for (unsigned i = 0; i < WORKERS; i++)
		workers[i] = child_start(work, &plan);
	soak(workers, &plan, seen);

	atomic_store(plan.is_over, true);
	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t slot = child_hear(workers[i].fd);

		assert_true(slot < REGION_SLOTS);
		for (unsigned d = 0; d < DEVICES; d++) {
			uint64_t own = child_hear(workers[i].fd);

			assert_int_equal(ledger_held_units(seen, (unsigned)slot, d), own);
			held[d] += own;
		}
	}
	assert_books(&region, held);
	for (unsigned i = 0; i < WORKERS; i++) {
		child_say(workers[i].fd, 1);
		assert_int_equal(child_wait(&workers[i]), 0);
	}
	memset(held, 0, sizeof(held));
	assert_books(&region, held);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		assert_int_equal(atomic_load(&seen->own.slots[i].state), SLOT_FREE);
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(no_death_takes_more_than_the_limit_or_leaves_anything_behind),
	};

	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
