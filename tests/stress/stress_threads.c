/* SPDX-License-Identifier: Apache-2.0 */
/* The same code under the threads of one process, so that ThreadSanitizer sees all of it. */
#define LOG_TOPIC LOG_LEDGER
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"
#include "region/snapshot.h"
#include "tests/stress/random.h"
#include "tests/unit/capture.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define CHARGERS 4
#define ROUNDS	 100000
#define LIMIT	 1000u
#define DEAD	 50u /* a slot that nobody owns: its word is made up */

struct shared {
	const char *path;
	struct region region;
	uint64_t seed;
	_Atomic unsigned above_limit, failures;
	_Atomic bool is_over;
};

struct charger {
	struct shared *shared;
	unsigned slot, number;
	unsigned held;
};

static void *charge_and_give_back(void *argument)
{
	struct charger *c = argument;
	struct region_file *f = c->shared->region.file;
	struct random random = random_stream(c->shared->seed, c->number);

	for (int i = 0; i < ROUNDS; i++) {
		unsigned units = 1 + random_below(&random, 300);

		if (ledger_charge(f, c->slot, 0, units, LIMIT) == 0) {
			ledger_note(f, c->slot, 0, CHARGE_PLAIN, units);
			c->held += units;
		}
		if (ledger_used_units(f, 0) > LIMIT)
			atomic_fetch_add(&c->shared->above_limit, 1);
		units = c->held ? 1 + random_below(&random, c->held) : 0;
		ledger_uncharge(f, c->slot, 0, units);
		ledger_note(f, c->slot, 0, CHARGE_PLAIN, -(int64_t)units);
		c->held -= units;
	}
	return NULL;
}

/* Raises doubt as a death would, and settles it. */
static void *doubt_and_settle(void *argument)
{
	struct shared *shared = argument;
	struct region_file *f = shared->region.file;

	while (!atomic_load(&shared->is_over)) {
		atomic_fetch_add(&f->own.slots[DEAD].held[0], 3);
		ledger_reap(f, DEAD);
		if (ledger_settle(f, 0) == 0 && ledger_used_units(f, 0) > LIMIT)
			atomic_fetch_add(&shared->above_limit, 1);
	}
	return NULL;
}

/* A guest of its own: opens, adds devices, claims, reaps, closes. */
static void *come_and_go(void *argument)
{
	struct shared *shared = argument;

	for (int i = 0; !atomic_load(&shared->is_over); i++) {
		struct region region = REGION_NULL;
		unsigned slot, device, reaped;
		char uuid[16];

		snprintf(uuid, sizeof(uuid), "GPU-%d", i % REGION_DEVICES);
		if (region_open(shared->path, &region) != 0 || slot_claim(&region, &slot) != 0 ||
			region_device(&region, uuid, &device) != 0 ||
			ledger_charge(region.file, slot, 1, 5, LIMIT) != 0)
			atomic_fetch_add(&shared->failures, 1);
		else if (i % 4 == 0 && slot_reap(&region, &reaped) != 0)
			atomic_fetch_add(&shared->failures, 1);
		else
			ledger_uncharge(region.file, slot, 1, 5);
		region_close(&region);
	}
	return NULL;
}

static void *look(void *argument)
{
	struct shared *shared = argument;
	struct snapshot *snapshot = malloc(sizeof(*snapshot));
	uint64_t used, limit;

	while (snapshot && !atomic_load(&shared->is_over)) {
		if (snapshot_read(shared->path, snapshot) != 0 ||
			snapshot_device_use(shared->path, "GPU-0", &used, &limit) != 0)
			atomic_fetch_add(&shared->failures, 1);
	}
	free(snapshot);
	return NULL;
}

static void the_books_of_many_threads_are_exact(void **state)
{
	static void *(*const others[])(void *) = {doubt_and_settle, come_and_go, come_and_go, look};
	struct scratch *s = *state;
	struct shared shared = {.path = s->file, .region = REGION_NULL, .seed = random_seed()};
	struct charger chargers[CHARGERS];
	pthread_t threads[CHARGERS], guests[ARRAY_SIZE(others)];
	unsigned held = 0, reaped;

	assert_int_equal(region_open(s->file, &shared.region), 0);
	atomic_store(&shared.region.file->own.slot_high, DEAD + 1);
	/* two threads share the first slot */
	for (unsigned i = 0; i < CHARGERS; i++) {
		chargers[i] = (struct charger){.shared = &shared, .number = i};
		if (i == 1)
			chargers[i].slot = chargers[0].slot;
		else
			assert_int_equal(slot_claim(&shared.region, &chargers[i].slot), 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(pthread_create(&guests[i], NULL, others[i], &shared), 0);
	for (unsigned i = 0; i < CHARGERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, charge_and_give_back, &chargers[i]), 0);
	for (unsigned i = 0; i < CHARGERS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&shared.is_over, true);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		pthread_join(guests[i], NULL);

	assert_int_equal(atomic_load(&shared.above_limit), 0);
	assert_int_equal(atomic_load(&shared.failures), 0);
	for (unsigned i = 0; i < CHARGERS; i++)
		held += chargers[i].held;
	assert_int_equal(ledger_used_units(shared.region.file, 0), held);
	assert_int_equal(slot_reap(&shared.region, &reaped), 0);
	assert_int_equal(ledger_used_units(shared.region.file, 1), 0);
	region_close(&shared.region);
}

struct counter {
	struct lock lock;
	unsigned value; /* no atomic: the lock guards it */
};

static void *count_under_lock(void *argument)
{
	struct counter *c = argument;

	for (int i = 0; i < ROUNDS; i++) {
		LOCK_SCOPE(&c->lock);
		c->value++;
	}
	return NULL;
}

static void a_lock_lets_one_thread_in(void **state)
{
	struct counter counter = {.lock = LOCK_INIT};
	pthread_t threads[CHARGERS];

	for (unsigned i = 0; i < CHARGERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_under_lock, &counter), 0);
	for (unsigned i = 0; i < CHARGERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter.value, CHARGERS * ROUNDS);
	assert_int_equal(atomic_load(&counter.lock.is_held), 0);
}

static void a_lock_that_is_held_is_not_had_by_trying(void **state)
{
	struct lock lock = LOCK_INIT;

	assert_true(lock_try(&lock));
	assert_false(lock_try(&lock));
	lock_leave(&lock);
	assert_true(lock_try(&lock));
	lock_leave(&lock);
}

static void *say_often(void *argument)
{
	for (int i = 0; i < 50; i++)
		log_warn("said by many", U64("i", i));
	return NULL;
}

static void one_place_writes_sixteen_lines_whoever_comes_there(void **state)
{
	static struct capture out;
	pthread_t threads[CHARGERS];
	unsigned lines = 0;

	capture_begin(&out);
	for (unsigned i = 0; i < CHARGERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, say_often, NULL), 0);
	for (unsigned i = 0; i < CHARGERS; i++)
		pthread_join(threads[i], NULL);
	capture_end(&out);
	for (const char *at = out.text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, LOG_LINES_PER_SITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(the_books_of_many_threads_are_exact),
		cmocka_unit_test(a_lock_lets_one_thread_in),
		cmocka_unit_test(a_lock_that_is_held_is_not_had_by_trying),
		cmocka_unit_test(one_place_writes_sixteen_lines_whoever_comes_there),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
