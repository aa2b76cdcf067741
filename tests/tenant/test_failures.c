/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own memory runs out, or a call of the driver fails, at each place on the way of the tour
 * (client_tour.c); or there is no place for one more process. The program hears of it, or that there is
 * no memory, and nothing is lost.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "region/slot.h"
#include "region/snapshot.h"
#include "tests/tenant/course.h"

/* More than what the tour takes unannounced (streams, a green context, a second context's extra). */
#define FOUND_BYTES (24 * MIB)

/* What the books have only because a comparison with the driver found it. */
static uint64_t found_bytes(const struct slice *slice)
{
	_cleanup_free_ struct snapshot *snapshot = malloc(sizeof(*snapshot));
	uint64_t bytes = 0;

	assert_non_null(snapshot);
	assert_int_equal(snapshot_read(slice->region, snapshot), 0);
	for (unsigned i = 0; i < snapshot->process_count; i++)
		bytes += snapshot->processes[i].kind_bytes[0][CHARGE_UNATTRIBUTED];
	return bytes;
}

/* After a tour with a fault in it: only such answers, nothing left behind, and the books agree. */
static void expect_clean(struct course *c, struct tenant *t, const char *fault, int allowed)
{
	uint64_t truth, books;
	char *at = t->answer;
	int r = tenant_ask(t, "tour");
	bool is_told = strstr(t->answer, "result=");

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
	/* A tour has not always as many requests of memory: the fault may have come in this one. */
	if (!is_told && t->answer[0])
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
	struct course c = course_begin(*state);
	char fault[64];

	course_find_places(&c);
	assert_true(c.memory_requests > 10);
	c.node->is_loud = true;
	for (unsigned n = 1; n <= c.memory_requests; n++) {
		struct tenant *t;

		snprintf(fault, sizeof(fault), "VGPU_FAULT=memory %u", n);
		t = course_start(&c, fault);
		expect(t, OK, "primary 0");
		expect_clean(&c, t, fault, OUT_OF_MEMORY);
		assert_int_equal(tenant_end(t), 0);
		course_end_case(&c);
	}
}

/* Without any memory of our own whatever needs a table is refused, and nothing is lost. */
static void without_memory_of_our_own_allocations_are_refused(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t;

	c.node->is_loud = true;
	t = course_start(&c, "VGPU_FAULT=memory-from 1");
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
static void count_calls(struct course *c, uint64_t counts[CALLS_MAX])
{
	struct tenant *t = course_start(c, "VGPU_FAULT=");

	expect(t, OK, "primary 0");
	inject_clear_counts(c->node->machine);
	expect(t, OK, "tour");
	for (unsigned i = 0; call_name(i); i++)
		counts[i] = inject_read_count(c->node->machine, i);
	assert_int_equal(tenant_end(t), 0);
	course_end_case(c);
}

static void a_driver_call_that_fails_anywhere_leaves_the_books_exact(void **state)
{
	static uint64_t counts[CALLS_MAX];
	struct course c = course_begin(*state);
	unsigned functions = 0;
	char what[128];

	c.node->is_loud = true;
	count_calls(&c, counts);
	for (unsigned i = 0; call_name(i); i++) {
		functions += counts[i] > 0;
		for (unsigned n = 0; n < TIMES && n < counts[i]; n++) {
			struct inject_rule rule = failure_of(call_name(i), n);
			struct tenant *t = course_start(&c, "VGPU_FAULT=");

			snprintf(what, sizeof(what), "%s fails the %u. time", rule.symbol, n + 1);
			expect(t, OK, "primary 0");
			assert_true(inject_add_rule(c.node->machine, &rule) >= 0);
			expect_clean(&c, t, what, FAILURE);
			inject_clear_rules(c.node->machine);
			assert_int_equal(tenant_end(t), 0);
			course_end_case(&c);
		}
	}
	print_message("%u functions of the driver failed\n", functions);
	assert_true(functions > 30);
}

/* Claims every slot of the slice and keeps them until it is killed. */
static pid_t start_greedy(const struct slice *slice)
{
	struct region region = REGION_NULL;
	pid_t pid = fork();
	unsigned slot;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (region_open(slice->region, &region) != 0)
		_exit(1);
	while (slot_claim(&region, &slot) == 0)
		;
	for (;;)
		pause();
}

static void a_slice_of_1024_processes_refuses_one_more_until_one_ends(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t = tenant_new(c.slice), *late;
	pid_t greedy = start_greedy(c.slice);
	struct region region = REGION_NULL;

	assert_true(greedy > 0);
	assert_int_equal(region_open(c.slice->region, &region), 0);
	for (int i = 0; i < 10000 && !atomic_load(&region.file->own.slots[REGION_SLOTS - 1].state);
		i++)
		usleep(1000);
	region_close(&region);
	c.node->is_loud = true;
	late = tenant_start(c.node, c.slice, "linked", NULL);
	expect(late, OUT_OF_MEMORY, "primary 0");
	expect(late, OUT_OF_MEMORY, "newctx c 0");
	assert_int_equal(tenant_end(late), 0);
	/* Who has a place notices nothing. */
	course_expect_within(t, PEER_US, OK, "alloc a 1g");
	course_expect_within(t, PEER_US, OUT_OF_MEMORY, "alloc b 8g");
	expect(t, OK, "free a");
	kill(greedy, SIGKILL);
	waitpid(greedy, NULL, 0);
	late = tenant_new(c.slice);
	assert_int_equal(tenant_end(late), 0);
	course_expect_all_for(&c, t);
	assert_int_equal(tenant_end(t), 0);
}

/* So many more than it has open, as its numbers begin without a gap. */
static void leave_descriptors(pid_t pid, rlim_t left, struct rlimit *ret_before)
{
	struct rlimit few;
	char path[64];
	struct stat info;
	int first = 0;

	do
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, first++);
	while (lstat(path, &info) == 0);
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, ret_before), 0);
	few = *ret_before;
	few.rlim_cur = (rlim_t)first - 1 + left;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &few, NULL), 0);
}

static void who_has_no_descriptor_left_at_first_is_refused_for_good(void **state)
{
	struct course c = course_begin(*state);
	struct rlimit before;
	struct tenant *t;
	pid_t pid;

	c.node->is_loud = true;
	t = tenant_start(c.node, c.slice, "linked", NULL);
	/* A child begins anew with the library. */
	expect(t, OK, "init");
	for (rlim_t left = 0; left < 2; left++) {
		expect(t, OK, "fork");
		pid = (pid_t)tenant_number(t, "pid");
		leave_descriptors(pid, left, &before);
		expect(t, OUT_OF_MEMORY, "newctx c 0");
		expect(t, OUT_OF_MEMORY, "newctx c 0");
		assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &before, NULL), 0);
		expect(t, OUT_OF_MEMORY, "newctx c 0");
		expect(t, 0, "exit 0");
	}
	expect(t, OK, "primary 0");
	course_expect_all_for(&c, t);
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
	assert_true(holds_text(getenv("TENANT_LIBRARY"), "VGPU_FAULT"));
	assert_false(holds_text(getenv("TENANT_PRODUCT"), "VGPU_FAULT"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(the_library_that_is_installed_has_no_faults_in_it),
		test_with_node(our_own_memory_running_out_is_out_of_memory_and_leaves_nothing),
		test_with_node(without_memory_of_our_own_allocations_are_refused),
		test_with_node(who_has_no_descriptor_left_at_first_is_refused_for_good),
		test_with_node(a_slice_of_1024_processes_refuses_one_more_until_one_ends),
		test_with_node(a_driver_call_that_fails_anywhere_leaves_the_books_exact),
	};

	return cmocka_run_group_tests_name("failures", tests, NULL, NULL);
}
