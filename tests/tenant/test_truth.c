/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library finds when it compares its books with the driver, while other threads take and free
 * memory. The library under test is a build with base/fault.h's places in it (fault_env.c).
 */
#include <stdio.h>

#include "tests/tenant/course.h"
#include "tests/tenant/meter.h"
#include "region/layout.h"

#define UNANNOUNCED_BYTES (16 * MIB) /* by fault_env.c */
#define QUESTIONS_MOST	  64

/* A process whose n-th question to NVML is answered while another thread has a block; what is found. */
static uint64_t find_beside_a_thread(struct course *c, unsigned n)
{
	struct tenant *t;
	char fault[64];
	uint64_t held;

	snprintf(fault, sizeof(fault), "VGPU_FAULT=borrow %u truth: asking", n);
	t = course_start(c, fault);
	expect(t, OK, "primary 0");
	expect(t, OK, "stream s");
	expect(t, OUT_OF_MEMORY, "alloc a 8g");
	held = slice_agreed(c->slice, 0);
	assert_int_equal(tenant_end(t), 0);
	course_end_case(c);
	return held;
}

static void what_a_thread_takes_and_frees_during_a_comparison_is_not_found(void **state)
{
	struct course c = course_begin(*state);
	uint64_t without = find_beside_a_thread(&c, QUESTIONS_MOST);
	unsigned n = 1;

	while (n < QUESTIONS_MOST && find_beside_a_thread(&c, n) == without + UNANNOUNCED_BYTES)
		n++;
	print_message("%u questions\n", n - 1);
	assert_true(n > 1 && n < QUESTIONS_MOST);
	assert_int_equal(find_beside_a_thread(&c, n), without);
}

static void a_context_is_not_measured_beside_another_call(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t = course_start(&c, "VGPU_FAULT=borrow 1 context: asking");
	uint64_t learned_bytes;

	expect(t, OK, "primary 0");
	expect(t, OK, "newctx c 0");
	learned_bytes = meter_region(c.slice)->own.devices[0].context_bytes;
	print_message("%llu MiB\n", (unsigned long long)(learned_bytes / MIB));
	assert_in_range(learned_bytes, 500 * MIB, 540 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_context_is_not_measured_beside_another_call),
		test_with_node(what_a_thread_takes_and_frees_during_a_comparison_is_not_found),
	};

	return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}
