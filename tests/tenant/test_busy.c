/* SPDX-License-Identifier: Apache-2.0 */
/* The work that NVML shows a tenant is its slice's: samples, records, and what it is asked to show. */
#include "tests/tenant/scene.h"

#include <stdio.h>

#include "region/layout.h"

static void samples_are_of_the_slice(void **state)
{
	struct scene s = make_scene(*state, NULL);

	expect(s.looker, NOT_FOUND, "samples 0 100");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	make_busy(&s);
	expect(s.looker, OK, "samples 0 100");
	assert_int_equal(tenant_number(s.looker, "count"), 1);
	assert_true(shows(s.looker, " count=1 info=0:1 %d:", s.one->pid));
	assert_true(shows(s.looker, " i%d:", s.one->pid));
	assert_false(shows(s.looker, "%d:", s.other->pid));
	tenant_kill(s.one, 9);
	expect(s.looker, NOT_FOUND, "samples 0 100");
}

static void how_busy_the_device_is_can_be_the_slices(void **state)
{
	struct scene s = make_scene(*state, NULL);
	struct tenant *own =
		tenant_start(*state, s.a, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice", NULL);
	uint64_t device, slice;

	expect(own, OK, "busy 0");
	assert_int_equal(tenant_number(own, "gpu"), 0);
	make_busy(&s);
	expect(s.looker, OK, "busy 0");
	device = tenant_number(s.looker, "gpu");
	expect(own, OK, "busy 0");
	slice = tenant_number(own, "gpu");
	assert_in_range(slice, 1, 40);
	assert_true(device > slice);
	expect(own, OK, "busy 1");
	assert_int_equal(tenant_number(own, "gpu"), 0);
}

static void half_of_the_cores_is_all_there_is_to_a_slice_of_half(void **state)
{
	struct scene s = make_scene(*state, NULL);
	struct tenant *own =
		tenant_start(*state, s.a, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice", NULL);
	FILE *region = fopen(s.a->region, "r+");
	uint64_t half = 50, whole;

	assert_non_null(region);
	make_busy(&s);
	expect(own, OK, "busy 0");
	whole = tenant_number(own, "gpu");
	fseek(region, offsetof(struct hami_region, sm_limit_percent), SEEK_SET);
	assert_int_equal(fwrite(&half, sizeof(half), 1, region), 1);
	assert_int_equal(fclose(region), 0);
	expect(own, OK, "busy 0");
	assert_true(tenant_number(own, "gpu") > whole + whole / 2);
	assert_true(tenant_number(own, "gpu") <= 100);
}

static void records_are_of_the_slice(void **state)
{
	struct scene s = make_scene(*state, "VGPU_SIM_NVML=accounting");

	expect(s.looker, INSUFFICIENT_SIZE, "accounts 0 0");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	expect(s.looker, INSUFFICIENT_SIZE, "accounts 0 1");
	expect(s.looker, OK, "accounts 0 8");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	assert_true(shows(s.looker, " %d:0", s.one->pid) && shows(s.looker, " %d:0", s.two->pid));
	expect(s.looker, OK, "accounts 1 8");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	expect(s.looker, OK, "account 0 %d", s.two->pid);
	assert_int_equal(tenant_number(s.looker, "most"), CONTEXT_BYTES + 10 * MIB);
	expect(s.looker, NOT_FOUND, "account 0 %d", s.other->pid);
	expect(s.looker, NOT_FOUND, "account 0 1");
}

static void sessions_are_of_the_slice(void **state)
{
	struct scene s = make_scene(*state, "VGPU_SIM_NVML=sessions");

	expect(s.looker, OK, "sessions 0 8");
	assert_true(shows(s.looker, " count=2 captures=0:2 "));
	assert_true(shows(s.looker, " %d:", s.one->pid) && shows(s.looker, " %d:", s.two->pid));
	assert_true(shows(s.looker, " c%d:", s.one->pid) && shows(s.looker, " c%d:", s.two->pid));
	assert_false(shows(s.looker, "%d:", s.other->pid));
	expect(s.looker, OK, "sessions 0 2");
	expect(s.looker, INSUFFICIENT_SIZE, "sessions 0 1");
	assert_string_equal(s.looker->answer, " count=2 captures=7:2");
	expect(s.looker, 2, "sessions 0 8 null");
	expect(s.looker, OK, "sessions 0 0 null");
	assert_string_equal(s.looker->answer, " count=2 captures=0:2");
	expect(s.looker, OK, "sessions 1 8");
	assert_string_equal(s.looker->answer, " count=0 captures=0:0");
	expect(s.other, OK, "sessions 0 8");
	assert_true(shows(s.other, " count=1 captures=0:1 %d:", s.other->pid));
}

static void a_card_without_sessions_says_so(void **state)
{
	struct scene s = make_scene(*state, NULL);

	expect(s.looker, NOT_SUPPORTED, "sessions 0 8");
	assert_string_equal(s.looker->answer, " count=8 captures=3:8");
}

static void records_that_are_not_kept_are_none(void **state)
{
	struct scene s = make_scene(*state, NULL);

	expect(s.looker, OK, "accounts 0 0");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	expect(s.looker, NOT_SUPPORTED, "account 0 %d", s.two->pid);
	expect(s.looker, NOT_SUPPORTED, "account 0 %d", s.other->pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(samples_are_of_the_slice),
		test_with_node(how_busy_the_device_is_can_be_the_slices),
		test_with_node(half_of_the_cores_is_all_there_is_to_a_slice_of_half),
		test_with_node(records_are_of_the_slice),
		test_with_node(records_that_are_not_kept_are_none),
		test_with_node(sessions_are_of_the_slice),
		test_with_node(a_card_without_sessions_says_so),
	};

	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
