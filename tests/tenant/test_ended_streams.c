/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed in the order of a stream whose context ends before the stream gets there. */
#include "tests/tenant/tenant.h"

/* Makes the work that takes a while, as an executable graph in the current context. */
static void make_work(struct tenant *t, const char *name, unsigned us)
{
	expect(t, OK, "graph g");
	expect(t, OK, "gspin g 1 %u", us);
	expect(t, OK, "instantiate %s g", name);
	expect(t, OK, "endgraph g");
}

/*
 * The block is freed in the order of a busy stream of another context, which is destroyed then: nobody sees when the driver frees it. The
 * primary context's own stream is busy for longer.
 */
static void free_in_ended_context(struct tenant *t)
{
	expect(t, OK, "newctx c 0");
	expect(t, OK, "stream s");
	make_work(t, "work", 200000);
	expect(t, OK, "glaunch work s");
	expect(t, OK, "freeasync a s");
	expect(t, OK, "endctx c");
	expect(t, OK, "primary 0");
	expect(t, OK, "glaunch wait");
}

static void what_is_freed_in_a_context_that_ends_is_charged_until_it_is_gone(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	/* Loaded for a context that stays. */
	make_work(t, "wait", 600000);
	for (unsigned i = 0; i < 3; i++) {
		expect(t, OK, "alloc a 900m");
		free_in_ended_context(t);
		expect(t, OUT_OF_MEMORY, "alloc b 900m");
		expect(t, OK, "sync");
		expect(t, OK, "alloc b 900m");
		expect(t, OK, "free b");
	}
	assert_int_equal(tenant_end(t), 0);
}

/* What others can open is in their figures as well. */
static void what_no_figure_tells_stays_charged_where_its_stream_has_ended(void **state)
{
	struct slice *slice = slice_new(*state, "a", "3g", NULL);
	struct tenant *t = tenant_new(slice);

	make_work(t, "wait", 600000);
	expect(t, OK, "newctx own 0");
	expect(t, OK, "alloc a 900m");
	expect(t, OK, "ipcget a");
	free_in_ended_context(t);
	expect(t, OK, "sync");
	expect(t, OUT_OF_MEMORY, "alloc b 1300m");
	expect(t, OK, "endctx own");
	expect(t, OK, "alloc b 1300m");
	expect(t, OK, "free b");
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(what_is_freed_in_a_context_that_ends_is_charged_until_it_is_gone),
		test_with_node(what_no_figure_tells_stays_charged_where_its_stream_has_ended),
	};

	return cmocka_run_group_tests_name("ended_streams", tests, NULL, NULL);
}
