/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with memory: what the driver takes for them is charged, and no honest launch is refused. */
#include "tests/tenant/tenant.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Streams may have been found and charged by now, or not. */
static void expect_held(struct slice *slice, uint64_t beside_context)
{
	uint64_t held = slice_agreed(slice, 0);

	if (held < CONTEXT_BYTES + beside_context ||
		held > CONTEXT_BYTES + beside_context + slice->slack_bytes + MIB)
		print_message("held %llu MiB beside the context\n",
			(unsigned long long)((held - CONTEXT_BYTES) / MIB));
	assert_in_range(held, CONTEXT_BYTES + beside_context,
		CONTEXT_BYTES + beside_context +
			(slice->slack_bytes ? slice->slack_bytes + MIB : 0));
}

/* A graph that allocates so much and frees it again, and what can be launched of it. */
static void make_graph(struct tenant *t, const char *name, const char *size)
{
	expect(t, OK, "graph g%s", name);
	expect(t, OK, "gmem g%s m%s %s", name, name, size);
	expect(t, OK, "gfree g%s m%s", name, name);
	expect(t, OK, "instantiate e%s g%s", name, name);
}

/* The same with a kernel of so many microseconds between. */
static void make_slow_graph(struct tenant *t, const char *name, const char *size, unsigned us)
{
	expect(t, OK, "graph g%s", name);
	expect(t, OK, "gmem g%s m%s %s", name, name, size);
	expect(t, OK, "gspin g%s 1 %u", name, us);
	expect(t, OK, "gfree g%s m%s", name, name);
	expect(t, OK, "instantiate e%s g%s", name, name);
}

static void a_graphs_memory_is_charged_from_its_launch_to_a_trim(void **state)
{
	static const char *const doors[] = {"linked", "linked-thread", "procaddr-thread"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);

	for (unsigned d = 0; d < 3; d++) {
		struct tenant *t = tenant_start(node, slice, doors[d], NULL);

		expect(t, OK, "primary 0");
		make_graph(t, "1", "100m");
		expect_held(slice, 0);
		expect(t, OK, d == 1 ? "upload e1" : "glaunch e1");
		expect_held(slice, 128 * MIB);
		for (int i = 0; i < 20; i++)
			expect(t, OK, "glaunch e1");
		expect(t, OK, "sync");
		expect_held(slice, 128 * MIB);
		expect(t, OK, "endexec e1");
		expect(t, OK, "endgraph g1");
		expect_held(slice, 128 * MIB);
		expect(t, OK, "gtrim");
		expect_held(slice, 0);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void every_way_to_make_a_memory_node_is_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	slice->slack_bytes = TWO_STREAMS_BYTES;
	expect(t, OK, "stream s");
	expect(t, OK, "graph g1");
	expect(t, OK, "gmem g1 m1 100m 0 generic");
	expect(t, OK, "gfree g1 m1");
	expect(t, OK, "instantiate e1 g1 old");
	expect(t, OK, "glaunch e1 s");
	expect_held(slice, 128 * MIB);
	expect(t, OK, "streamsync s");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	expect(t, OK, "capture s");
	expect(t, OK, "async m2 70m s");
	expect(t, OK, "freeasync m2 s");
	expect(t, OK, "endcapture s g2");
	expect(t, OK, "instantiate e2 g2");
	expect_held(slice, 0);
	expect(t, OK, "glaunch e2 s 5");
	expect_held(slice, 96 * MIB);
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	/* uploaded with the instantiation */
	expect(t, OK, "endexec e1");
	expect(t, OK, "instantiate e1 g1 2 s");
	expect_held(slice, 128 * MIB);
	expect(t, OK, "endexec e1");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	expect(t, OK, "graph g3");
	expect(t, OK, "gmem g3 m3 900m");
	expect(t, OUT_OF_MEMORY, "instantiate e3 g3 2 s");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* In the forms for per-thread streams stream 0 is the one that is captured, and not the legacy one. */
static void a_capture_of_the_threads_own_stream_allocates_nothing(void **state)
{
	static const char *const doors[] = {"linked-thread", "procaddr-thread"};
	struct slice *slice = slice_new(*state, "a", "1000m", NULL);

	for (unsigned d = 0; d < 2; d++) {
		struct tenant *t = tenant_start(*state, slice, doors[d], NULL);

		expect(t, OK, "primary 0");
		expect(t, OK, "alloc full 400m");
		expect_held(slice, 400 * MIB);
		expect(t, OK, "capture 0");
		expect(t, OK, "async m 200m 0");
		expect(t, OK, "freeasync m 0");
		expect(t, OK, "endcapture 0 g");
		expect_held(slice, 400 * MIB);
		expect(t, OK, "free full");
		expect(t, OK, "instantiate e g");
		expect(t, OK, "glaunch e");
		expect_held(slice, 224 * MIB);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void what_a_graph_leaves_allocated_is_charged_until_it_is_trimmed(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "graph g");
	expect(t, OK, "gmem g m 40m");
	expect(t, OK, "instantiate e g");
	for (int i = 0; i < 4; i++) {
		expect(t, OK, "glaunch e");
		expect(t, INVALID_VALUE, "glaunch e");
		expect(t, OK, "gtrim");
		expect_held(slice, 64 * MIB);
		expect(t, OK, i % 2 ? "free m" : "freeasync m");
		expect(t, OK, "sync");
		expect_held(slice, 64 * MIB);
		expect(t, INVALID_VALUE, "free m");
		if (i < 2)
			expect(t, OK, "gtrim");
		expect_held(slice, i < 2 ? 0 : 64 * MIB);
	}
	expect(t, OK, "endexec e");
	expect(t, OK, "instantiate e g 1");
	expect(t, OK, "glaunch e");
	expect(t, OK, "glaunch e");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "endexec e");
	expect(t, OK, "endgraph g");
	expect(t, OK, "gtrim");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "free m");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void graphs_fill_a_quota_and_no_more(void **state)
{
	struct slice *slice = slice_new(*state, "a", "10g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "fillgraphs 1g");
	assert_int_equal(tenant_number(t, "count"), 9);
	expect_held(slice, 9 * GIB);
	expect(t, OK, "alloc a 256m");
	expect(t, OUT_OF_MEMORY, "alloc b 1g");
	expect(t, OK, "drop");
	expect_held(slice, 9 * GIB + 256 * MIB);
	/* what graphs do not use goes before anything is refused */
	expect(t, OK, "alloc b 9g");
	expect_held(slice, 9 * GIB + 256 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_launch_at_the_quotas_edge_can_be_repeated(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	slice->slack_bytes = TWO_STREAMS_BYTES;
	expect(t, OK, "stream s");
	expect(t, OK, "stream s2");
	make_slow_graph(t, "1", "1g", 200);
	expect(t, OK, "alloc a 256m");
	expect(t, OK, "glaunch e1 s 300");
	expect_held(slice, GIB + 256 * MIB);
	/* one after the other, on whatever stream */
	expect(t, OK, "inturn e1 s e1 s2 50");
	/* another one that shares its memory */
	make_slow_graph(t, "2", "1000m", 200);
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	expect(t, OK, "inturn e1 s e2 s 100");
	expect_held(slice, GIB + 256 * MIB);
	/* one whose memory is freed by the next launch */
	expect(t, OK, "sync");
	expect(t, OK, "graph g3");
	expect(t, OK, "gmem g3 m3 1g");
	expect(t, OK, "gspin g3 1 200");
	expect(t, OK, "instantiate e3 g3 1");
	expect(t, OK, "glaunch e3 s 100");
	expect_held(slice, GIB + 256 * MIB);
	/* which no other can have meanwhile */
	expect(t, OUT_OF_MEMORY, "glaunch e1 s");
	expect(t, OK, "glaunch e3 s 100");
	expect(t, OK, "sync");
	expect(t, OK, "free m3");
	expect(t, OK, "glaunch e1 s 10");
	expect_held(slice, GIB + 256 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void graphs_on_two_streams_have_memory_each_or_are_refused(void **state)
{
	struct slice *slice = slice_new(*state, "a", "3g", NULL);
	struct tenant *t = tenant_new(slice);

	slice->slack_bytes = TWO_STREAMS_BYTES;
	expect(t, OK, "stream s");
	expect(t, OK, "stream s2");
	make_slow_graph(t, "1", "1g", 300);
	make_slow_graph(t, "2", "1g", 300);
	expect(t, OK, "inturn e1 s e2 s2 200");
	expect_held(slice, 2 * GIB);
	expect(t, OK, "inturn e1 s e2 s2 200");
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	/* with room for one only, the second waits for the first to be done, or is refused */
	make_slow_graph(t, "3", "1g", 20000);
	expect(t, OK, "alloc a 1g");
	expect(t, OK, "glaunch e3 s");
	expect(t, OUT_OF_MEMORY, "glaunch e2 s2");
	expect(t, OK, "sync");
	for (int i = 0; i < 10; i++) {
		expect(t, OK, "glaunch e2 s2");
		expect(t, OK, "sync");
		expect(t, OK, "glaunch e1 s");
		expect(t, OK, "sync");
	}
	expect_held(slice, 2 * GIB);
	assert_int_equal(tenant_end(t), 0);
}

static void each_device_has_a_pool_of_its_own(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", "200m");
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "graph g");
	expect(t, OK, "gmem g m1 100m 0");
	expect(t, OK, "gmem g m2 100m 1");
	expect(t, OK, "gfree g m1");
	expect(t, OK, "gfree g m2");
	expect(t, OK, "instantiate e g");
	expect(t, OK, "glaunch e");
	expect(t, OK, "glaunch e");
	expect_held(slice, 128 * MIB);
	assert_int_equal(slice_agreed(slice, 1), 128 * MIB);
	expect(t, OK, "sync");
	expect(t, OK, "graph h");
	expect(t, OK, "gmem h m3 300m 1");
	expect(t, OK, "instantiate f h");
	expect(t, OUT_OF_MEMORY, "glaunch f");
	expect(t, OK, "gtrim 1");
	assert_int_equal(slice_agreed(slice, 1), 0);
	expect_held(slice, 128 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void the_pool_outlives_its_context(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	make_graph(t, "1", "100m");
	expect(t, OK, "glaunch e1");
	expect(t, OK, "sync");
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 128 * MIB);
	expect(t, OK, "primary 0");
	make_graph(t, "2", "120m");
	expect(t, OK, "glaunch e2");
	expect_held(slice, 128 * MIB);
	expect(t, OK, "alloc a 490m");
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(slice_agreed(slice, 0), 0);
}

static void processes_share_the_quota_and_one_may_be_killed(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *first = tenant_new(slice), *second = tenant_new(slice);

	make_slow_graph(first, "1", "2g", 100000);
	make_graph(second, "1", "1g");
	expect(first, OK, "glaunch e1");
	expect(second, OUT_OF_MEMORY, "glaunch e1");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 2 * GIB);
	tenant_kill(first, SIGKILL);
	expect(second, OK, "glaunch e1");
	expect(second, OK, "glaunch e1");
	expect_held(slice, GIB);
	assert_int_equal(tenant_end(second), 0);
}

static void threads_that_launch_and_trim_keep_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	slice->slack_bytes = 8 * TWO_STREAMS_BYTES;
	/* with room for all of them none is refused, and then with room for some */
	expect(t, OK, "launchers 6 500 64m");
	assert_int_equal(tenant_number(t, "refused"), 0);
	expect(t, OK, "launchers 6 500 500m");
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	/* what was kept on the careful side among threads is found when they are gone */
	expect(t, OK, "info");
	assert_in_range(slice_books(slice, 0), CONTEXT_BYTES, slice_truth(slice, 0) + MIB);
	assert_in_range(slice_truth(slice, 0), CONTEXT_BYTES, CONTEXT_BYTES + slice->slack_bytes);
	assert_int_equal(tenant_end(t), 0);
}

static void a_driver_that_fails_leaves_no_charge(void **state)
{
	static const char *const calls[] = {"cuGraphLaunch", "cuGraphUpload",
		"cuGraphInstantiateWithFlags", "cuGraphExecDestroy", "cuDeviceGraphMemTrim",
		"cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphMemFreeNodeGetParams",
		"cuStreamGetId", "cuStreamIsCapturing", "cuStreamQuery"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct inject_rule broken = {.tag = "*", .result = 999};
		bool fails_to_begin = i == 2 || (i >= 5 && i <= 7);

		snprintf(broken.symbol, sizeof(broken.symbol), "%s", calls[i]);
		expect(t, OK, "graph g");
		expect(t, OK, "gmem g m 100m");
		expect(t, OK, "gfree g m");
		assert_true(inject_add_rule(node->machine, &broken) >= 0);
		expect(t, fails_to_begin ? 999 : OK, "instantiate e g");
		if (fails_to_begin) {
			inject_clear_rules(node->machine);
			expect(t, OK, "instantiate e g");
		}
		expect(t, i == 1 ? 999 : OK, "upload e");
		expect(t, i == 0 ? 999 : OK, "glaunch e");
		expect(t, OK, "sync");
		expect(t, i == 4 ? 999 : OK, "gtrim");
		expect(t, i == 0 ? 999 : OK, "glaunch e");
		expect(t, i == 3 ? 999 : OK, "endexec e");
		inject_clear_rules(node->machine);
		if (i == 3)
			expect(t, OK, "endexec e");
		expect(t, OK, "endgraph g");
		expect(t, OK, "sync");
		slice_agreed(slice, 0);
		expect(t, OK, "gtrim");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void a_driver_that_does_not_tell_what_it_holds_is_charged_the_most(void **state)
{
	struct inject_rule broken = {
		.symbol = "cuDeviceGetGraphMemAttribute", .tag = "*", .result = 999};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	make_graph(t, "1", "100m");
	assert_true(inject_add_rule(node->machine, &broken) >= 0);
	expect(t, OK, "glaunch e1");
	assert_true(slice_books(slice, 0) >= slice_truth(slice, 0));
	expect(t, OK, "glaunch e1");
	assert_true(slice_books(slice, 0) >= slice_truth(slice, 0));
	inject_clear_rules(node->machine);
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void the_drivers_memory_for_nodes_is_found_and_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "600m", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "graph g");
	expect(t, OK, "gspin g 5000 0");
	expect(t, OK, "instantiate e1 g");
	expect(t, OUT_OF_MEMORY, "alloc a 83m");
	expect_held(slice, 14 * MIB);
	expect(t, OK, "instantiate e2 g");
	expect(t, OK, "sleep 30"); /* before a refusal, NVML is asked every 20 ms at most */
	expect(t, OUT_OF_MEMORY, "alloc a 69m");
	expect_held(slice, 26 * MIB);
	expect(t, OK, "update e2 g");
	expect(t, OK, "glaunch e1");
	expect(t, OK, "alloc a 50m");
	expect(t, OUT_OF_MEMORY, "instantiate e3 g");
	expect_held(slice, 76 * MIB);
	expect(t, OK, "free a");
	expect(t, OK, "instantiate e3 g");
	assert_int_equal(tenant_end(t), 0);
}

static void an_executable_graph_can_be_changed_in_every_way(void **state)
{
	static const char *const doors[] = {"linked", "dlopen", "procaddr"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);

	for (unsigned d = 0; d < sizeof(doors) / sizeof(doors[0]); d++) {
		struct tenant *t = tenant_start(node, slice, doors[d], NULL);

		expect(t, OK, "primary 0");
		expect(t, OK, "graph g");
		expect(t, OK, "gspin g 3 0");
		expect(t, OK, "instantiate e g first");
		expect(t, OK, "change e g");
		expect(t, OK, "glaunch e");
		expect(t, OK, "graph h");
		expect(t, OK, "gmem h m 100m 0 first");
		expect(t, OK, "gfree h m");
		expect(t, OK, "instantiate f h first");
		expect(t, OK, "glaunch f");
		expect_held(slice, 128 * MIB);
		expect(t, 910, "update f h");
		expect(t, OK, "glaunch f");
		expect_held(slice, 128 * MIB);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void a_child_of_fork_knows_nothing_of_its_parents_graphs(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	make_graph(t, "1", "100m");
	expect(t, OK, "glaunch e1");
	expect(t, OK, "fork");
	expect(t, 3, "glaunch e1");
	expect(t, OK, "exit 0");
	expect_held(slice, 128 * MIB);
	expect(t, OK, "glaunch e1");
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_is_freed_ahead_of_a_launch_is_there_for_it(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	slice->slack_bytes = TWO_STREAMS_BYTES;
	expect(t, OK, "stream s");
	expect(t, OK, "stream s2");
	expect(t, OK, "graph g");
	expect(t, OK, "gmem g m 1g");
	expect(t, OK, "gspin g 1 200");
	expect(t, OK, "instantiate e g");
	expect(t, OK, "graph f");
	expect(t, OK, "gfree f m");
	expect(t, OK, "instantiate freeing f");
	for (int i = 0; i < 50; i++) {
		expect(t, OK, "glaunch e s");
		expect(t, OK, i % 2 ? "freeasync m s" : "glaunch freeing s");
	}
	/* and in another stream it is where that has come to the free */
	for (int i = 0; i < 10; i++) {
		expect(t, OK, "glaunch e s");
		expect(t, OK, "streamsync s");
		expect(t, OK, i % 2 ? "freeasync m s2" : "glaunch freeing s2");
		expect(t, OK, "streamsync s2");
	}
	expect_held(slice, GIB);
	/* and is not where that works for long */
	expect(t, OK, "glaunch e s");
	expect(t, OK, "graph h");
	expect(t, OK, "gspin h 1 500000");
	expect(t, OK, "instantiate slow h");
	for (int i = 0; i < 2; i++) {
		expect(t, OK, "glaunch slow s2");
		expect(t, OK, i ? "freeasync m s2" : "glaunch freeing s2");
		expect(t, OUT_OF_MEMORY, "glaunch e s");
		expect(t, OK, "streamsync s2");
		expect(t, OK, "glaunch e s");
	}
	expect(t, OK, "free m");
	expect(t, OK, "glaunch e s");
	expect_held(slice, GIB);
	assert_int_equal(tenant_end(t), 0);
}

/* Allocations after each other are at one address, and small ones near each other. */
static void a_graph_is_reserved_what_its_addresses_span(void **state)
{
	struct slice *slice = slice_new(*state, "a", "3g", NULL);
	struct tenant *t = tenant_new(slice);

	slice->slack_bytes = TWO_STREAMS_BYTES;
	expect(t, OK, "stream s");
	expect(t, OK, "capture s");
	for (int i = 0; i < 8; i++) {
		expect(t, OK, "async m 1g s");
		expect(t, OK, "freeasync m s");
	}
	expect(t, OK, "endcapture s g");
	expect(t, OK, "instantiate e g");
	expect(t, OK, "glaunch e s 3");
	expect_held(slice, GIB);
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	expect(t, OK, "capture s");
	for (int i = 0; i < 200; i++)
		expect(t, OK, "async m%d 1k s", i);
	for (int i = 0; i < 200; i++)
		expect(t, OK, "freeasync m%d s", i);
	expect(t, OK, "endcapture s h");
	expect(t, OK, "instantiate f h");
	expect(t, OK, "glaunch f s 3");
	expect_held(slice, 32 * MIB);
	expect(t, OK, "sync");
	expect(t, OK, "gtrim");
	/* two at once need both */
	expect(t, OK, "graph i");
	expect(t, OK, "gmem i m1 1500m");
	expect(t, OK, "gmem i m2 1500m");
	expect(t, OK, "gfree i m1");
	expect(t, OK, "gfree i m2");
	expect(t, OK, "instantiate j i");
	expect(t, OUT_OF_MEMORY, "glaunch j s");
	assert_int_equal(tenant_end(t), 0);
}

/* As it takes nothing: some programs make their graph anew for each step, and update the executable one. */
static void a_full_slice_updates_its_graphs(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "graph g");
	expect(t, OK, "gspin g 20 1");
	expect(t, OK, "instantiate e g");
	expect(t, OK, "glaunch e");
	expect(t, OK, "graph h");
	expect(t, OK, "gspin h 20 2");
	expect(t, OUT_OF_MEMORY, "fill 1m");
	for (int i = 0; i < 5; i++) {
		expect(t, OK, "update e h");
		expect(t, OK, "glaunch e");
	}
	expect(t, OUT_OF_MEMORY, "instantiate f h");
	assert_int_equal(tenant_end(t), 0);
}

static void a_graph_of_a_handle_that_was_used_before_is_a_new_one(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 50; i++) {
		expect(t, OK, "graph g");
		if (i % 2 == 0)
			expect(t, OK, "gmem g m 64m");
		expect(t, OK, "instantiate e g 1");
		expect(t, OK, "glaunch e");
		expect_held(slice, i % 2 == 0 ? 64 * MIB : 0);
		expect(t, OK, "endexec e");
		expect(t, OK, "endgraph g");
		if (i % 2 == 0)
			expect(t, OK, "freeasync m");
		expect(t, OK, "sync");
		expect(t, OK, "gtrim");
	}
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_graphs_memory_is_charged_from_its_launch_to_a_trim),
		test_with_node(every_way_to_make_a_memory_node_is_charged),
		test_with_node(a_capture_of_the_threads_own_stream_allocates_nothing),
		test_with_node(what_a_graph_leaves_allocated_is_charged_until_it_is_trimmed),
		test_with_node(graphs_fill_a_quota_and_no_more),
		test_with_node(a_launch_at_the_quotas_edge_can_be_repeated),
		test_with_node(graphs_on_two_streams_have_memory_each_or_are_refused),
		test_with_node(each_device_has_a_pool_of_its_own),
		test_with_node(the_pool_outlives_its_context),
		test_with_node(processes_share_the_quota_and_one_may_be_killed),
		test_with_node(threads_that_launch_and_trim_keep_the_quota),
		test_with_node(a_driver_that_fails_leaves_no_charge),
		test_with_node(a_driver_that_does_not_tell_what_it_holds_is_charged_the_most),
		test_with_node(the_drivers_memory_for_nodes_is_found_and_charged),
		test_with_node(an_executable_graph_can_be_changed_in_every_way),
		test_with_node(what_is_freed_ahead_of_a_launch_is_there_for_it),
		test_with_node(a_graph_is_reserved_what_its_addresses_span),
		test_with_node(a_full_slice_updates_its_graphs),
		test_with_node(a_child_of_fork_knows_nothing_of_its_parents_graphs),
		test_with_node(a_graph_of_a_handle_that_was_used_before_is_a_new_one),
	};

	return cmocka_run_group_tests_name("graphs", tests, NULL, NULL);
}
