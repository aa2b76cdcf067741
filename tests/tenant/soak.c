/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes of one slice under a random load (load/load.h), some of them killed at random moments
 * and started anew. Judged from outside: the driver never gave the slice more than its quota, whatever
 * the books said; nobody failed for another reason than the quota; when everything is given back the
 * books read zero, and when all are dead, the whole quota is there again.
 *
 * LOAD_OPERATIONS says how many (100,000 unless told), LOAD_SEED repeats a run as far as the scheduler
 * lets it. One process's load comes again exactly: "load SEED OPERATIONS", told to one client.
 */
#include "tests/tenant/meter.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "region/layout.h"

#define CLIENTS	    8
#define OPERATIONS  UINT64_C(100000)	  /* finished ones; what the killed did comes on top */
#define A_LOAD	    1000		  /* operations between two answers */
#define KILL_ONE_IN 3			  /* answers */
#define STALL_NS    UINT64_C(60000000000) /* with no answer from anybody */
#define QUOTA	    "6g"
#define QUOTA_BYTES (6 * GIB)

#define IDLERS	    4
#define IDLE_ROUNDS 40
#define IDLE_LOAD   500
#define IDLE_QUOTA  "100g"    /* nothing is refused, or a comparison would come before it */
#define LEFT_BYTES  (2 * MIB) /* of a process that has asked NVML, as SECURITY.md says */
#define LEFT_US	    500000    /* as it says, too, where the threads of a process lack processors */

/* Each client takes the next one. */
static const char *const doors[] = {"linked", "dlopen", "next", "procaddr", "procaddr-v1",
	"default", "procaddr-thread", "linked-thread"};

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

struct soak {
	struct slice *slice;
	struct tenant *tenant[CLIENTS];
	bool is_at_work[CLIENTS];
	uint64_t seed; /* of the next load */
	uint64_t done, refused, heard_ns;
	unsigned kills;
};

/* Every other process has three threads. */
static void put_to_work(struct soak *s, unsigned at)
{
	tenant_tell(s->tenant[at], "load %llu %u %u", (unsigned long long)s->seed++, A_LOAD,
		at % 2 ? 3 : 1);
	s->is_at_work[at] = true;
}

static void begin(struct soak *s, unsigned at)
{
	struct node *node = s->slice->node;
	struct tenant *t;

	/* The table of tenants is for tests that start a few; here its places are used again. */
	node->tenant_count = at;
	t = tenant_start(node, s->slice, doors[at % (sizeof(doors) / sizeof(doors[0]))], NULL);
	node->tenant_count = CLIENTS;
	/* The others may have taken all there is; they give it back sooner or later. */
	while (tenant_ask(t, "primary 0") == OUT_OF_MEMORY)
		usleep(1000);
	assert_string_equal(t->answer, "");
	s->tenant[at] = t;
	put_to_work(s, at);
}

/* A process in the middle of its work, or one that waits for more. */
static void kill_one(struct soak *s)
{
	unsigned victim = (unsigned)random() % CLIENTS;

	usleep((useconds_t)(random() % 2000));
	tenant_kill(s->tenant[victim], SIGKILL);
	begin(s, victim);
	s->kills++;
}

static void hear(struct soak *s, unsigned at)
{
	struct tenant *t = s->tenant[at];

	if (tenant_answer(t) != OK)
		fail_msg("a load failed:%s", t->answer);
	s->done += tenant_number(t, "done");
	s->refused += tenant_number(t, "refused");
	s->heard_ns = clock_now_ns();
	s->is_at_work[at] = false;
}

/* Waits for those at work; returns how many have answered. */
static unsigned hear_some(struct soak *s)
{
	struct pollfd ready[CLIENTS];
	unsigned heard = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		ready[i] = (struct pollfd){
			.fd = s->is_at_work[i] ? s->tenant[i]->from_fd : -1, .events = POLLIN};
	poll(ready, CLIENTS, 1000);
	for (unsigned i = 0; i < CLIENTS; i++)
		if (ready[i].revents) {
			hear(s, i);
			heard++;
		}
	assert_true(clock_now_ns() - s->heard_ns < STALL_NS);
	assert_true(slice_peak(s->slice, 0) <= QUOTA_BYTES);
	return heard;
}

static void let_finish(struct soak *s)
{
	bool is_anybody_at_work = true;

	while (is_anybody_at_work) {
		is_anybody_at_work = false;
		for (unsigned i = 0; i < CLIENTS; i++)
			is_anybody_at_work |= s->is_at_work[i];
		if (is_anybody_at_work)
			hear_some(s);
	}
}

static void expect_nothing_held(struct soak *s)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		expect(s->tenant[i], OK, "unprimary 0");
	assert_int_equal(slice_agreed(s->slice, 0), 0);
}

static void expect_whole_quota(struct soak *s)
{
	struct tenant *last;

	for (unsigned i = 0; i < CLIENTS; i++)
		tenant_kill(s->tenant[i], SIGKILL);
	s->slice->node->tenant_count = 0;
	last = tenant_new(s->slice);
	expect(last, OUT_OF_MEMORY, "fill 2m");
	assert_int_equal(tenant_number(last, "count"), (QUOTA_BYTES - CONTEXT_BYTES) / (2 * MIB));
	expect(last, OK, "drop");
	assert_int_equal(slice_agreed(s->slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(last), 0);
}

static void the_quota_outlives_everybody(void **state)
{
	uint64_t operations = from_environment("LOAD_OPERATIONS", OPERATIONS);
	struct soak s = {.slice = slice_new(*state, "a", QUOTA, NULL),
		.seed = from_environment("LOAD_SEED", (uint64_t)time(NULL) * 1000000),
		.heard_ns = clock_now_ns()};

	print_message("LOAD_SEED=%llu LOAD_OPERATIONS=%llu\n", (unsigned long long)s.seed,
		(unsigned long long)operations);
	srandom((unsigned)s.seed);
	for (unsigned i = 0; i < CLIENTS; i++)
		begin(&s, i);
	while (s.done < operations) {
		hear_some(&s);
		for (unsigned i = 0; i < CLIENTS; i++) {
			if (s.is_at_work[i])
				continue;
			put_to_work(&s, i);
			if (random() % KILL_ONE_IN == 0)
				kill_one(&s);
		}
	}
	let_finish(&s);
	print_message("idle: books %llu MiB, driver %llu MiB\n",
		(unsigned long long)(slice_books(s.slice, 0) / MIB),
		(unsigned long long)(slice_truth(s.slice, 0) / MIB));
	expect(s.tenant[0], OK, "families");
	print_message(
		"%llu operations, %llu refused, %u processes killed, peak %llu of %llu MiB,%s\n",
		(unsigned long long)s.done, (unsigned long long)s.refused, s.kills,
		(unsigned long long)(slice_peak(s.slice, 0) / MIB),
		(unsigned long long)(QUOTA_BYTES / MIB), s.tenant[0]->answer);
	assert_true(s.refused > 0);
	expect_nothing_held(&s);
	expect_whole_quota(&s);
}

/* What the driver gives back as streams go on is in the books until the process's next call, and no part of this. */
static uint64_t on_its_way(const struct region_own *own)
{
	static const enum charge_kind kinds[] = {CHARGE_PLAIN, CHARGE_MAPPED, CHARGE_POOL};
	uint64_t bytes = 0;

	for (unsigned i = 0; i < own->slot_high; i++)
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			bytes += own->slots[i].kind_bytes[0][kinds[k]];
	return bytes;
}

/*
 * Whether others want all processors, while the slice's processes are idle: a thread in a call may have lacked one for as long as
 * calls wait for a comparison.
 */
static bool is_overloaded(void)
{
	static const char word[] = "procs_running ";
	_cleanup_file_ FILE *file = fopen("/proc/stat", "re");
	char line[4096];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0)
			return strtol(line + strlen(word), NULL, 10) - 1 >=
			       sysconf(_SC_NPROCESSORS_ONLN);
	fail();
	return false;
}

/* What is left stays until a call of the process that comes so much later. */
static void make_the_next_call(struct tenant *const *tenant)
{
	usleep(LEFT_US);
	for (unsigned i = 0; i < IDLERS; i++) {
		expect(tenant[i], OK, "alloc next 4m");
		expect(tenant[i], OK, "free next");
	}
}

static bool are_right(struct slice *slice)
{
	return slice_books(slice, 0) <=
	       slice_truth(slice, 0) + on_its_way(&meter_region(slice)->own) + IDLERS * LEFT_BYTES;
}

static void idle_processes_hold_in_the_books_what_they_hold(void **state)
{
	struct slice *slice = slice_new(*state, "a", IDLE_QUOTA, NULL);
	uint64_t seed = from_environment("LOAD_SEED", (uint64_t)time(NULL) * 1000000);
	struct tenant *tenant[IDLERS];
	unsigned late = 0;

	print_message("LOAD_SEED=%llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < IDLERS; i++) {
		tenant[i] = tenant_new(slice);
		expect(tenant[i], OK, "primary 0");
	}
	for (unsigned round = 0; round < IDLE_ROUNDS; round++) {
		for (unsigned i = 0; i < IDLERS; i++)
			tenant_tell(
				tenant[i], "load %llu %u 2", (unsigned long long)seed++, IDLE_LOAD);
		for (unsigned i = 0; i < IDLERS; i++)
			assert_int_equal(tenant_answer(tenant[i]), OK);
		if (!are_right(slice) && is_overloaded()) {
			late++;
			make_the_next_call(tenant);
		}
		if (!are_right(slice))
			fail_msg("round %u: the books say %llu MiB, and %llu are held", round,
				(unsigned long long)(slice_books(slice, 0) / MIB),
				(unsigned long long)(slice_truth(slice, 0) / MIB));
	}
	print_message(
		"%u of %u rounds right after the next call alone, as the machine is overloaded\n",
		late, IDLE_ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {test_with_node(the_quota_outlives_everybody),
		test_with_node(idle_processes_hold_in_the_books_what_they_hold)};

	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
