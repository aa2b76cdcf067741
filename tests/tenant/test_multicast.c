/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is bound to multicast objects: charged for as long as the driver keeps it. */
#include <stdio.h>

#include "sim/machine/inject.h"
#include "tests/tenant/sharing.h"

#define NOT_SUPPORTED  801
#define INVALID_DEVICE 101
#define STEPS	       4

/* By its handle, or by an address that goes at once; where the memory lies, or for a device that is named. */
#define FORMS 4

static void bind(struct tenant *t, unsigned form)
{
	const char *device = form / 2 ? " 0" : "";

	expect(t, OK, "create h 64m");
	if (form % 2 == 0) {
		expect(t, OK, "bind o 0 h 64m%s", device);
		return;
	}
	expect(t, OK, "map v 0 64m h");
	expect(t, OK, "bindat o 0 v 64m%s", device);
	expect(t, OK, "unmap v 0 64m");
}

static void bound_memory_is_charged_until_nothing_keeps_it(void **state)
{
	/* What is done, and after which step the memory is gone. */
	static const struct {
		const char *steps[STEPS];
		unsigned last;
	} orders[] = {
		{{"unbind o 0 64m", "release h", "release o"}, 1},
		{{"release h", "unbind o 0 64m", "release o"}, 1},
		{{"unbind o 0 64m", "release o", "release h"}, 2},
		{{"release o", "release h"}, 1},
		{{"release h", "release o"}, 1},
	};
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 64m");
	for (unsigned i = 0; i < FORMS * sizeof(orders) / sizeof(orders[0]); i++) {
		expect(t, OK, "multicast o 128m");
		bind(t, i % FORMS);
		expect_beside(slice, 1, 64 * MIB);
		for (unsigned s = 0; s < STEPS && orders[i / FORMS].steps[s]; s++) {
			expect(t, OK, "%s", orders[i / FORMS].steps[s]);
			expect_beside(slice, 1, s < orders[i / FORMS].last ? 64 * MIB : 0);
		}
	}
	assert_int_equal(tenant_end(t), 0);
}

static void an_object_lives_by_its_mappings_too(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 64m");
	expect(t, OK, "reserve w 64m");
	for (unsigned i = 0; i < FORMS; i++) {
		expect(t, OK, "multicast o 64m");
		expect(t, OK, "map w 0 64m o");
		bind(t, i);
		expect(t, OK, "release h");
		expect(t, OK, "release o");
		expect_beside(slice, 1, 64 * MIB);
		expect(t, OK, "retain o w");
		expect(t, OK, "unmap w 0 64m");
		expect_beside(slice, 1, 64 * MIB);
		if (i % 2)
			expect(t, OK, "unbind o 0 64m");
		expect(t, OK, "release o");
		expect_beside(slice, 1, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void each_binding_keeps_the_memory(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "multicast o 128m");
	expect(t, OK, "multicast p 128m");
	expect(t, OK, "create h 64m");
	expect(t, OK, "bind o 0 h 64m");
	expect(t, OK, "bind o 64m h 32m");
	expect(t, OK, "bind p 64m h 64m");
	expect(t, OK, "release h");
	expect(t, OK, "unbind o 0 64m");
	/* Not just what was bound. */
	expect(t, INVALID_VALUE, "unbind o 0 64m");
	expect(t, INVALID_VALUE, "unbind o 64m 64m");
	expect(t, INVALID_VALUE, "unbind p 0 128m");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "unbind o 64m 32m");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "release p");
	expect_beside(slice, 1, 0);
	expect(t, OK, "release o");
	assert_int_equal(tenant_end(t), 0);
}

static void a_call_that_fails_changes_nothing(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	struct inject_rule rule = {.tag = "a", .times = 1, .result = 999};

	snprintf(rule.symbol, sizeof(rule.symbol), "cuMulticastCreate");
	assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
	expect(t, 999, "multicast o 64m");
	inject_clear_rules(slice->node->machine);
	expect(t, OK, "multicast o 64m");
	expect(t, OK, "create h 64m");
	snprintf(rule.symbol, sizeof(rule.symbol), "cuMulticastBindMem");
	assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
	expect(t, 999, "bind o 0 h 64m");
	inject_clear_rules(slice->node->machine);
	expect(t, OK, "bind o 0 h 64m");
	expect(t, INVALID_VALUE, "bind o 0 h 64m");
	expect(t, OK, "release h");
	snprintf(rule.symbol, sizeof(rule.symbol), "cuMulticastUnbind");
	assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
	expect(t, 999, "unbind o 0 64m");
	inject_clear_rules(slice->node->machine);
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "unbind o 0 64m");
	expect_beside(slice, 1, 0);
	/* Nothing tells on which device it was, so nothing tells when it is unbound. */
	expect(t, OK, "create h 64m");
	snprintf(rule.symbol, sizeof(rule.symbol), "cuMemGetAllocationPropertiesFromHandle");
	rule.times = 0;
	assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
	expect(t, OK, "bind o 0 h 64m");
	inject_clear_rules(slice->node->machine);
	expect(t, OK, "unbind o 0 64m");
	expect(t, OK, "release h");
	expect(t, OK, "release o");
	expect_books(slice, 1, 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
	expect_beside(slice, 0, 0);
}

static void a_device_that_is_named_is_the_one_it_is_unbound_from(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	struct inject_rule rule = {.tag = "a", .times = 1, .result = 999};

	expect(t, OK, "multicast o 64m");
	expect(t, OK, "create h 64m");
	expect(t, OK, "reserve v 64m");
	expect(t, OK, "map v 0 64m h");
	expect(t, INVALID_DEVICE, "bind o 0 h 64m 1");
	expect(t, INVALID_DEVICE, "bindat o 0 v 64m 1");
	expect(t, OK, "unmap v 0 64m");
	snprintf(rule.symbol, sizeof(rule.symbol), "cuMulticastBindMem_v2");
	assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
	expect(t, 999, "bind o 0 h 64m 0");
	inject_clear_rules(slice->node->machine);
	/* It need not be asked where the memory lies. */
	snprintf(rule.symbol, sizeof(rule.symbol), "cuMemGetAllocationPropertiesFromHandle");
	rule.times = 0;
	assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
	expect(t, OK, "bind o 0 h 64m 0");
	inject_clear_rules(slice->node->machine);
	expect(t, OK, "release h");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "unbind o 0 64m");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_others_may_keep_stays_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "multicast o 64m shared");
	expect(t, OK, "export f o");
	for (unsigned i = 0; i < 2; i++) {
		bind(t, 2 * i);
		expect(t, OK, "release h");
		expect_beside(slice, 1, 64 * MIB);
		if (i)
			continue;
		expect(t, OK, "unbind o 0 64m");
		expect_beside(slice, 1, 0);
	}
	expect(t, OK, "release o");
	expect(t, 0, "closefd f");
	/* A refusal compares with NVML. */
	expect(t, OUT_OF_MEMORY, "alloc x 1g");
	expect_beside(slice, 1, 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
	expect_beside(slice, 0, 0);
}

static void a_share_without_exports_gives_out_no_object(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	char text[1024];

	expect(t, OK, "multicast o 64m shared");
	expect(t, OK, "multicast p 64m shared");
	expect(t, OK, "export f p");
	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\nexports none\ndevice * memory 1g\nend\n",
		slice->region);
	slice_write(slice, text);
	/* A refusal reads it anew. */
	expect(t, OUT_OF_MEMORY, "alloc x 2g");
	expect(t, NOT_SUPPORTED, "export g o");
	expect(t, NOT_SUPPORTED, "exportfabric o");
	expect(t, OK, "create h 64m");
	expect(t, NOT_SUPPORTED, "bind p 0 h 64m");
	expect(t, NOT_SUPPORTED, "bind p 0 h 64m 0");
	expect(t, OK, "bind o 0 h 64m");
	expect(t, OK, "release h");
	expect(t, OK, "unbind o 0 64m");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void memory_of_a_pool_is_not_bound(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "multicast o 64m");
	expect(t, OK, "async a 64m");
	expect(t, NOT_SUPPORTED, "bindat o 0 a 64m");
	expect(t, NOT_SUPPORTED, "bindat o 0 a 64m 0");
	expect(t, OK, "freeasync a");
	expect(t, OK, "release o");
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(bound_memory_is_charged_until_nothing_keeps_it),
		test_with_node(an_object_lives_by_its_mappings_too),
		test_with_node(each_binding_keeps_the_memory),
		test_with_node(a_call_that_fails_changes_nothing),
		test_with_node(a_device_that_is_named_is_the_one_it_is_unbound_from),
		test_with_node(what_others_may_keep_stays_charged),
		test_with_node(a_share_without_exports_gives_out_no_object),
		test_with_node(memory_of_a_pool_is_not_bound),
	};

	return cmocka_run_group_tests_name("multicast", tests, NULL, NULL);
}
