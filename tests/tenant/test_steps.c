/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is killed, stopped or forked at each step of the tenant library, on the way of the tour
 * (client_tour.c) through all covered functions; or our own memory, or a call of the driver, fails there. The
 * library under test is a build with base/fault.h's places in it (fault_env.c).
 */
#include "tests/tenant/tenant.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "region/snapshot.h"

#define QUOTA	   (4 * GIB)
#define PLACES	   128
#define PEER_US	   50000 /* what a call may cost a process whose peer is stopped */
#define TOUR	   "primary 0\ntour\nunprimary 0"
#define TOUR_LINES 3

/* More than what the tour takes unannounced (a stream, a second context's extra). */
#define FOUND_BYTES (16 * MIB)

struct place {
	char name[96];
	unsigned hits;
};

struct course {
	struct node *node;
	struct slice *slice;
	struct place places[PLACES];
	unsigned place_count;
	unsigned memory_requests; /* of our own memory, by one tour */
	char log[200];
};

static void count_place(struct course *c, const char *name)
{
	unsigned i = 0;

	while (i < c->place_count && strcmp(c->places[i].name, name) != 0)
		i++;
	if (i == c->place_count) {
		assert_true(c->place_count < PLACES);
		snprintf(c->places[c->place_count++].name, sizeof(c->places[0].name), "%s", name);
	}
	c->places[i].hits++;
}

/* The next case begins with a new region and no process but the test. */
static void end_case(struct course *c)
{
	unlink(c->slice->region);
	c->node->tenant_count = 0;
}

static struct course begin(struct node *node)
{
	return (struct course){.node = node, .slice = slice_new(node, "a", "4g", NULL)};
}

static struct tenant *start_victim(struct course *c, const char *fault)
{
	char log[256];

	snprintf(log, sizeof(log), "VGPU_FAULT_LOG=%s", c->log);
	return tenant_start(c->node, c->slice, "linked", fault, c->log[0] ? log : NULL, NULL);
}

static void expect_tour(struct tenant *t)
{
	for (unsigned i = 0; i < TOUR_LINES; i++) {
		int r = tenant_answer(t);

		if (r != OK)
			print_message("line %u of the tour: %d%s\n", i, r, t->answer);
		assert_int_equal(r, OK);
	}
}

/* Which places the tour passes, and how often, alone in a new region. */
static void find_places(struct course *c)
{
	char line[96];
	struct tenant *t;
	FILE *file;

	snprintf(c->log, sizeof(c->log), "%s/places", c->node->dir);
	t = start_victim(c, "VGPU_FAULT=");
	tenant_tell(t, TOUR);
	expect_tour(t);
	assert_int_equal(tenant_end(t), 0);
	file = fopen(c->log, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "memory") == 0)
			c->memory_requests++;
		else
			count_place(c, line);
	}
	fclose(file);
	c->log[0] = '\0';
	end_case(c);
	assert_true(c->place_count > 50);
}

/* Steps that only the first process of a slice does. */
static bool is_of_the_first(const struct place *p)
{
	return strncmp(p->name, "begin:", 6) == 0 || strncmp(p->name, "context:", 8) == 0;
}

static void expect_within(struct tenant *t, uint64_t us, int want, const char *what)
{
	expect(t, want, "time %s", what);
	if (tenant_number(t, "us") > us)
		print_message(
			"%s took %llu us\n", what, (unsigned long long)tenant_number(t, "us"));
	assert_true(tenant_number(t, "us") <= us);
}

/* All of the quota but t's context is there for t, and not a chunk more; then books and driver agree. */
static void expect_all_for(struct course *c, struct tenant *t)
{
	char all[64];

	snprintf(all, sizeof(all), "alloc all %lluk",
		(unsigned long long)((QUOTA - CONTEXT_BYTES) / KIB));
	/* The dead are waited for, for as long as a process may wait, while the kernel ends them. */
	expect_within(t, 2 * PEER_US, OK, all);
	expect(t, OUT_OF_MEMORY, "alloc more 1");
	assert_int_equal(slice_agreed(c->slice, 0), QUOTA);
	expect(t, OK, "free all");
	assert_int_equal(slice_agreed(c->slice, 0), CONTEXT_BYTES);
}

typedef void try_fn(struct course *c, const char *fault, bool is_first);

static void kill_there(struct course *c, const char *fault, bool is_first)
{
	struct tenant *other = is_first ? NULL : tenant_new(c->slice);
	struct tenant *victim = start_victim(c, fault);

	tenant_tell(victim, TOUR);
	assert_int_equal(tenant_end(victim), SIGKILL);
	if (!other)
		other = tenant_new(c->slice);
	expect_all_for(c, other);
	assert_int_equal(tenant_end(other), 0);
}

static void wait_until_stopped(const struct tenant *t)
{
	uint64_t deadline_ns = clock_now_ns() + UINT64_C(10000000000);
	int status = 0;

	while (waitpid(t->pid, &status, WUNTRACED | WNOHANG) == 0 && clock_now_ns() < deadline_ns)
		usleep(500);
	assert_true(WIFSTOPPED(status));
}

static void stop_there(struct course *c, const char *fault, bool is_first)
{
	struct tenant *other = is_first ? NULL : tenant_new(c->slice);
	struct tenant *victim = start_victim(c, fault), *late;

	tenant_tell(victim, TOUR);
	wait_until_stopped(victim);
	if (!other)
		other = tenant_new(c->slice);
	expect_within(other, PEER_US, OK, "alloc a 64m");
	expect_within(other, PEER_US, OK, "free a");
	expect_within(other, PEER_US, OUT_OF_MEMORY, "alloc a 8g");
	late = tenant_start(c->node, c->slice, "linked", NULL);
	expect(late, OK, "init");
	expect_within(late, PEER_US, OK, "primary 0");
	expect_within(late, PEER_US, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_end(late), 0);
	expect_within(other, 2 * PEER_US, OUT_OF_MEMORY, "fill 64m");
	expect(other, OK, "drop");
	tenant_kill(victim, SIGCONT);
	expect_tour(victim);
	assert_int_equal(tenant_end(victim), 0);
	expect_all_for(c, other);
	assert_int_equal(tenant_end(other), 0);
}

static void fork_there(struct course *c, const char *fault, bool is_first)
{
	struct tenant *other = is_first ? NULL : tenant_new(c->slice);
	struct tenant *victim = start_victim(c, fault);

	tenant_tell(victim, TOUR);
	expect_tour(victim);
	assert_int_equal(tenant_end(victim), 0);
	if (!other)
		other = tenant_new(c->slice);
	expect_all_for(c, other);
	assert_int_equal(tenant_end(other), 0);
}

/* At each place, when it is passed for the first time and once later. */
static void try_everywhere(struct node *node, const char *action, try_fn *try)
{
	struct course c = begin(node);
	char fault[160];

	find_places(&c);
	for (unsigned i = 0; i < c.place_count; i++) {
		const struct place *p = &c.places[i];
		unsigned later = (p->hits + 1) / 2;

		for (unsigned n = 1; n <= later; n += later > 1 ? later - 1 : 1) {
			snprintf(fault, sizeof(fault), "VGPU_FAULT=%s %u %s", action, n, p->name);
			print_message("%s\n", fault);
			try(&c, fault, is_of_the_first(p));
			end_case(&c);
		}
	}
	print_message("%s at %u places\n", action, c.place_count);
}

static void a_process_killed_at_any_step_leaves_all_to_the_others(void **state)
{
	try_everywhere(*state, "kill", kill_there);
}

static void a_process_stopped_at_any_step_stops_nobody_and_goes_on(void **state)
{
	try_everywhere(*state, "stop", stop_there);
}

static void a_child_forked_at_any_step_lives_and_disturbs_nobody(void **state)
{
	try_everywhere(*state, "fork", fork_there);
}

/* What the books have only because a comparison with the driver found it. */
static uint64_t found_bytes(const struct slice *slice)
{
	_cleanup_free_ struct snapshot *snapshot = malloc(sizeof(*snapshot));
	uint64_t bytes = 0;

	assert_non_null(snapshot);
	assert_int_equal(snapshot_read(slice->region, snapshot), 0);
	for (unsigned i = 0; i < snapshot->process_count; i++)
		bytes += snapshot->processes[i].kind_bytes[0][CHARGE_OTHER];
	return bytes;
}

/* After a tour with a fault in it: only such answers, nothing left behind, and the books agree. */
static void expect_clean(struct course *c, struct tenant *t, const char *fault, int allowed)
{
	uint64_t truth, books;
	char *at = t->answer;
	int r = tenant_ask(t, "tour");

	while ((at = strstr(at, "result="))) {
		int result = atoi(at += 7);

		if (result != OUT_OF_MEMORY && result != allowed)
			print_message("%s: the program was told %d\n", fault, result);
		assert_true(result == OUT_OF_MEMORY || result == allowed);
	}
	if (r != OK)
		print_message("%s: something could not be given back\n", fault);
	assert_int_equal(r, OK);
	if (found_bytes(c->slice) > FOUND_BYTES)
		print_message("%s: %llu KiB had left the books and were found again\n", fault,
			(unsigned long long)(found_bytes(c->slice) / KIB));
	assert_true(found_bytes(c->slice) <= FOUND_BYTES);
	/* The next tour, without faults, finds all of the machinery in order. */
	expect(t, OK, "tour");
	if (t->answer[0])
		print_message("%s: afterwards%s\n", fault, t->answer);
	assert_string_equal(t->answer, "");
	truth = slice_truth(c->slice, 0);
	books = slice_books(c->slice, 0);
	/* What came unannounced is rounded up to the ledger's unit. */
	if (truth > books || books - truth >= 64 * KIB)
		print_message("%s: the driver gave %llu KiB, the books say %llu KiB\n", fault,
			(unsigned long long)(truth / KIB), (unsigned long long)(books / KIB));
	assert_true(truth <= books && books - truth < 64 * KIB);
}

static void our_own_memory_running_out_is_out_of_memory_and_leaves_nothing(void **state)
{
	struct course c = begin(*state);
	char fault[64];

	find_places(&c);
	assert_true(c.memory_requests > 10);
	c.node->is_loud = true;
	for (unsigned n = 1; n <= c.memory_requests; n++) {
		struct tenant *t;

		snprintf(fault, sizeof(fault), "VGPU_FAULT=memory %u", n);
		t = start_victim(&c, fault);
		expect(t, OK, "primary 0");
		expect_clean(&c, t, fault, OUT_OF_MEMORY);
		assert_int_equal(tenant_end(t), 0);
		end_case(&c);
	}
}

/* Without any memory of our own whatever needs a table is refused, and nothing is lost. */
static void without_memory_of_our_own_allocations_are_refused(void **state)
{
	struct course c = begin(*state);
	struct tenant *t;

	c.node->is_loud = true;
	t = start_victim(&c, "VGPU_FAULT=memory-from 1");
	expect(t, OK, "primary 0");
	expect(t, OUT_OF_MEMORY, "alloc a 1000");
	expect(t, OUT_OF_MEMORY, "alloc a 5m");
	expect(t, OUT_OF_MEMORY, "managed a 5m");
	expect(t, OUT_OF_MEMORY, "async a 5m");
	expect(t, OUT_OF_MEMORY, "create h 2m");
	expect(t, OUT_OF_MEMORY, "newctx c 0");
	expect(t, OK, "sync");
	expect(t, OK, "info");
	assert_int_equal(slice_agreed(c.slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

#define FAILURE \
	719 /* CUDA_ERROR_LAUNCH_FAILED: none of ours, and none that a call here has a reason for */
#define TIMES 4

static struct inject_rule failure_of(const char *symbol, unsigned skip)
{
	struct inject_rule rule = {.tag = "a", .skip = skip, .times = 1, .result = FAILURE};

	snprintf(rule.symbol, sizeof(rule.symbol), "%s", symbol);
	return rule;
}

/* How often the tour calls each function of the driver; by number. */
static void count_calls(struct course *c, uint64_t counts[INJECT_CALLS_MAX])
{
	struct tenant *t = start_victim(c, "VGPU_FAULT=");

	expect(t, OK, "primary 0");
	inject_clear_counts(c->node->machine);
	expect(t, OK, "tour");
	for (unsigned i = 0; inject_call_name(i); i++)
		counts[i] = inject_read_count(c->node->machine, i);
	assert_int_equal(tenant_end(t), 0);
	end_case(c);
}

static void a_driver_call_that_fails_anywhere_leaves_the_books_exact(void **state)
{
	static uint64_t counts[INJECT_CALLS_MAX];
	struct course c = begin(*state);
	unsigned functions = 0;
	char what[128];

	c.node->is_loud = true;
	count_calls(&c, counts);
	for (unsigned i = 0; inject_call_name(i); i++) {
		functions += counts[i] > 0;
		for (unsigned n = 0; n < TIMES && n < counts[i]; n++) {
			struct inject_rule rule = failure_of(inject_call_name(i), n);
			struct tenant *t = start_victim(&c, "VGPU_FAULT=");

			snprintf(what, sizeof(what), "%s fails the %u. time", rule.symbol, n + 1);
			expect(t, OK, "primary 0");
			assert_true(inject_add_rule(c.node->machine, &rule) >= 0);
			expect_clean(&c, t, what, FAILURE);
			inject_clear_rules(c.node->machine);
			assert_int_equal(tenant_end(t), 0);
			end_case(&c);
		}
	}
	print_message("%u functions of the driver failed\n", functions);
	assert_true(functions > 30);
}

static void *outlive(void *argument)
{
	for (;;)
		pause();
	return NULL;
}

/* Takes a slot and 64 MiB, and is then on its way out for as long as the test lets it. */
static pid_t start_lingering(struct slice *slice)
{
	struct region region = REGION_NULL;
	pid_t pid = fork();
	pthread_t thread;
	unsigned slot;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (region_open(slice->region, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		ledger_charge(region.file, slot, 0, 1024, LEDGER_NO_LIMIT) != 0 ||
		pthread_create(&thread, NULL, outlive, NULL) != 0)
		_exit(1);
	region_close(&region);
	syscall(SYS_exit, 0); /* of this thread alone */
	return 0;
}

/* 50 ms for the peer, and what a busy machine makes of the rest of the call. */
#define ONE_WAIT_US 80000

static void a_call_waits_for_a_lingering_peer_only_once(void **state)
{
	static const char *const calls[] = {"alloc a 8g", "async a 8g", "newctx c 0", "create h 8g",
		"managed a 8g", "pitch a 1m 8k"};
	struct course c = begin(*state);
	struct tenant *t = tenant_new(c.slice);
	pid_t peer = start_lingering(c.slice);

	assert_true(peer > 0);
	expect(t, OK, "alloc hold 3g");
	expect(t, OK, "async soon 32m");
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		usleep(SLOT_REST_NS / 1000);
		/* A free that is not settled, so that a pool's allocation looks twice. */
		expect(t, OK, "freeasync soon");
		expect_within(t, ONE_WAIT_US, OUT_OF_MEMORY, calls[i]);
		expect(t, OK, "async soon 32m");
	}
	usleep(SLOT_REST_NS / 1000);
	expect(t, OK, "time threads 4 1 8g");
	assert_true(tenant_number(t, "us") <= ONE_WAIT_US);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	expect(t, OK, "freeasync soon");
	expect(t, OK, "free hold");
	expect(t, OK, "sync");
	expect_all_for(&c, t);
	assert_int_equal(tenant_end(t), 0);
}

static bool holds_text(const char *path, const char *text)
{
	size_t length = strlen(text), used;
	FILE *file = fopen(path, "r");
	char *bytes = malloc(16 * MIB);
	bool is_there;

	assert_non_null(file);
	assert_non_null(bytes);
	used = fread(bytes, 1, 16 * MIB, file);
	fclose(file);
	is_there = memmem(bytes, used, text, length) != NULL;
	free(bytes);
	return is_there;
}

static void the_library_that_is_installed_has_no_faults_in_it(void **state)
{
	assert_true(holds_text(getenv("TENANT_SHIM"), "VGPU_FAULT"));
	assert_false(holds_text(getenv("TENANT_PRODUCT"), "VGPU_FAULT"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(the_library_that_is_installed_has_no_faults_in_it),
		test_with_node(a_process_killed_at_any_step_leaves_all_to_the_others),
		test_with_node(a_process_stopped_at_any_step_stops_nobody_and_goes_on),
		test_with_node(a_child_forked_at_any_step_lives_and_disturbs_nobody),
		test_with_node(a_call_waits_for_a_lingering_peer_only_once),
		test_with_node(our_own_memory_running_out_is_out_of_memory_and_leaves_nothing),
		test_with_node(without_memory_of_our_own_allocations_are_refused),
		test_with_node(a_driver_call_that_fails_anywhere_leaves_the_books_exact),
	};

	return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
