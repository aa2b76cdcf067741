/* SPDX-License-Identifier: Apache-2.0 */
/* Programs' own events are as without the library, also where the driver gives out a handle again that the library had. */
#include "tests/tenant/meter.h"

#define ROUNDS 20

/* Each round's context ends with events of the library's in it. */
static void play(void **state, const char *limits)
{
	struct slice *slice = meter_slice(*state, "a", "", limits);
	struct tenant *t = tenant_start(slice->node, slice, "linked", NULL);

	for (int i = 0; i < ROUNDS; i++) {
		expect(t, OK, "primary 0");
		expect(t, OK, "events");
		expect(t, OK, "events");
		expect(t, OK, i % 2 ? "oldunprimary 0" : "oldreset 0");
	}
	assert_int_equal(tenant_end(t), 0);
}

static void a_programs_events_are_its_own(void **state)
{
	play(state, "");
}

static void and_so_they_are_where_time_is_measured(void **state)
{
	play(state, "cores 50");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_programs_events_are_its_own),
		test_with_node(and_so_they_are_where_time_is_measured),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
