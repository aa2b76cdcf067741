/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limited slice beside a process without the library: what it gets of the device comes near its limit
 * when the driver's figures have been looked at for long enough. Takes a minute of virtual time.
 */
#include "tests/tenant/meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "policy/untracked.h"
#include "region/layout.h"

#define LEG_MS	  10000 /* an answer is waited for for 20 s */
#define KERNEL_NS 300000
#define LEGS	  3
#define LIMIT	  40
#define POINTS	  10

static uint64_t served_ns(const struct tenant *t)
{
	_cleanup_free_ struct machine_snapshot *snapshot = calloc(1, sizeof(*snapshot));

	assert_non_null(snapshot);
	assert_int_equal(machine_read_snapshot(t->node->machine, 1000000000, snapshot), 0);
	for (int i = 0; i < snapshot->process_count; i++)
		if (snapshot->process[i].pid == t->pid)
			return snapshot->process[i].device[0].busy_ns;
	fail();
	return 0;
}

static void prepare(struct tenant *t)
{
	expect(t, OK, "primary 0");
	expect(t, OK, "module m");
}

/* What the tenant got of the device, in percent, while both worked, or it alone. */
static uint64_t leg(struct tenant *t, struct tenant *neighbour)
{
	uint64_t before = served_ns(t), begun_ns = clock_now_ns(), got;

	tenant_tell(t, "toil m %d", LEG_MS);
	if (neighbour)
		tenant_tell(neighbour, "toil m %d", LEG_MS);
	assert_int_equal(tenant_answer(t), OK);
	got = (served_ns(t) - before) * 100 / (clock_now_ns() - begun_ns);
	if (neighbour)
		assert_int_equal(tenant_answer(neighbour), OK);
	print_message("got %llu %%, %llu permille of what elapsed is charged\n",
		(unsigned long long)got,
		(unsigned long long)meter_books(t->slice)->counted_permille);
	return got;
}

static struct tenant *start_limited(struct node *node)
{
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_start(node, slice, "linked", "CUDA_DEVICE_SM_LIMIT=40",
		"GPU_CORE_UTILIZATION_POLICY=force", NULL);

	assert_int_equal(inject_set_kernel(node->machine, "k", KERNEL_NS), 0);
	prepare(t);
	return t;
}

static void a_neighbour_without_the_library_is_not_charged(void **state)
{
	struct node *node = *state;
	struct tenant *t = start_limited(node), *neighbour;

	node->is_without_library = true;
	neighbour = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	prepare(neighbour);
	assert_in_range(leg(t, neighbour), LIMIT - POINTS, LIMIT + POINTS);
	for (int i = 1; i < LEGS; i++)
		leg(t, neighbour);
	assert_in_range(leg(t, neighbour), LIMIT - POINTS, LIMIT + POINTS);
	/* and when it has gone the limit is what it was */
	leg(t, NULL);
	assert_in_range(leg(t, NULL), LIMIT - 4, LIMIT + 4);
	assert_int_equal(meter_books(t->slice)->counted_permille, UNTRACKED_ALL_PERMILLE);
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(neighbour), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_neighbour_without_the_library_is_not_charged)};

	return cmocka_run_group_tests_name("neighbours", tests, NULL, NULL);
}
