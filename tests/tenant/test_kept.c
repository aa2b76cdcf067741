/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that something else than a pointer keeps: other interfaces, registered ranges, descriptors. */
#include "tests/tenant/sharing.h"

static void memory_of_other_interfaces_is_charged_while_it_is_imported(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "external e 300m");
	expect_beside(slice, 1, 300 * MIB);
	expect(t, OUT_OF_MEMORY, "external g 300m");
	expect(t, OK, "endexternal e");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void freed_memory_that_something_keeps_stays_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc a 64m");
	expect(t, OK, "range f a 64m");
	expect(t, OK, "free a");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "alloc b 32m");
	expect(t, OK, "range g b 32m");
	expect(t, 0, "closefd g");
	expect(t, OK, "free b");
	expect_beside(slice, 1, 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* As an expandable segment whose pages a network card had registered. */
static void mapped_memory_whose_descriptor_was_closed_comes_back(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 256m");
	for (unsigned i = 0; i < 10; i++) {
		expect(t, OK, "createx h 256m");
		expect(t, OK, "map v 0 256m h");
		expect(t, OK, "access v 0 256m");
		if (i % 2)
			expect(t, OK, "release h");
		expect(t, OK, "range f v 256m");
		expect(t, 0, "closefd f");
		expect(t, OK, "unmap v 0 256m");
		if (i % 2 == 0)
			expect(t, OK, "release h");
		expect_beside(slice, 1, 0);
	}
	/* One that is kept is charged. */
	expect(t, OK, "createx h 256m");
	expect(t, OK, "map v 0 256m h");
	expect(t, OK, "access v 0 256m");
	expect(t, OK, "release h");
	expect(t, OK, "range f v 256m");
	expect(t, OK, "unmap v 0 256m");
	expect_beside(slice, 1, 256 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(memory_of_other_interfaces_is_charged_while_it_is_imported),
		test_with_node(freed_memory_that_something_keeps_stays_charged),
		test_with_node(mapped_memory_whose_descriptor_was_closed_comes_back),
	};

	return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
