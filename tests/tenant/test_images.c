/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to load an image, from memory and from files: its data is charged, or it is refused. */
#include "tests/tenant/tenant.h"

#include <stdio.h>

static void expect_held(struct slice *slice, uint64_t beside_context)
{
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + beside_context);
}

static void a_module_from_a_file_is_charged(void **state)
{
	static const char *const kinds[] = {"ptx", "cubin"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 2; i++) {
		expect(t, OK, "imagefile %s/small %s data=100m", node->dir, kinds[i]);
		expect(t, OK, "imagefile %s/big %s data=600m", node->dir, kinds[i]);
		expect(t, OK, "loadfile m %s/small", node->dir);
		expect_held(slice, 100 * MIB);
		expect(t, OUT_OF_MEMORY, "loadfile n %s/big", node->dir);
		expect_held(slice, 100 * MIB);
		expect(t, OK, "unload m");
		expect_held(slice, 0);
	}
	/* Refused before it was loaded, not after. */
	assert_int_equal(slice_peak(slice, 0), CONTEXT_BYTES + 100 * MIB);
	expect(t, 301, "loadfile n %s/nowhere", node->dir);
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_library_from_a_file_is_charged_when_it_is_used(void **state)
{
	static const char *const kinds[] = {"ptx", "cubin"}, *const uses[] = {"module", "data"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 2; i++) {
		expect(t, OK, "imagefile %s/image %s data=100m", node->dir, kinds[i]);
		expect(t, OK, "libraryfile l %s/image", node->dir);
		expect_held(slice, 0);
		expect(t, OK, "uselibrary l %s", uses[i]);
		expect_held(slice, 100 * MIB);
		expect(t, OK, "endlibrary l");
		expect_held(slice, 0);
		expect(t, OK, "imagefile %s/image %s data=600m", node->dir, kinds[i]);
		expect(t, OK, "libraryfile l %s/image", node->dir);
		expect(t, OUT_OF_MEMORY, "uselibrary l %s", uses[i]);
		expect_held(slice, 0);
		expect(t, OK, "endlibrary l");
	}
	assert_int_equal(slice_peak(slice, 0), CONTEXT_BYTES + 100 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_module_with_options_is_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "moduleex m data=100m");
	expect_held(slice, 100 * MIB);
	expect(t, OUT_OF_MEMORY, "moduleex n data=600m");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "funcload m");
	expect(t, OK, "launch m");
	expect(t, OK, "unload m");
	expect_held(slice, 0);
	assert_int_equal(slice_peak(slice, 0), CONTEXT_BYTES + 100 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* What a fat binary holds is only seen after it is loaded; then it goes again. */
static void a_fat_binary_that_does_not_fit_goes_again(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "modulefat m data=100m");
	expect_held(slice, 100 * MIB);
	expect(t, OUT_OF_MEMORY, "modulefat n data=600m");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "alloc a 300m");
	expect(t, OK, "unload m");
	expect_held(slice, 300 * MIB);
	/* The driver had it for a moment. */
	slice->slack_bytes = 600 * MIB;
	assert_int_equal(tenant_end(t), 0);
}

static void managed_data_of_a_library_is_held_by_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l managed data=100m");
	expect(t, OK, "uselibrary l managed");
	expect(t, OK, "uselibrary l");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "endlibrary l");
	expect_held(slice, 0);
	expect(t, OK, "module m managed data=100m");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "unload m");
	expect_held(slice, 0);
	expect(t, OK, "module m managed data=100m");
	expect(t, OUT_OF_MEMORY, "module n managed data=600m");
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	expect(t, OK, "primary 0");
	expect(t, OK, "library l managed data=600m");
	expect(t, OUT_OF_MEMORY, "uselibrary l managed");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* What was loaded once needs no room again where something else was unloaded meanwhile, at the quota's edge as well. */
static void a_library_stays_loaded_when_another_goes(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l data=1000m");
	expect(t, OK, "uselibrary l module");
	expect(t, OK, "module m data=100m");
	expect(t, OK, "unload m");
	expect(t, OK, "uselibrary l module");
	expect_held(slice, 1000 * MIB);
	/* A later one is another library, also where it has that one's handle. */
	expect(t, OK, "endlibrary l");
	expect(t, OK, "library l data=1600m");
	expect(t, OUT_OF_MEMORY, "uselibrary l module");
	expect_held(slice, 0);
	expect(t, OK, "endlibrary l");
	expect(t, OK, "library l data=1000m");
	expect(t, OK, "uselibrary l module");
	expect_held(slice, 1000 * MIB);
	/* So is each context. */
	expect(t, OK, "reset 0");
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 600m");
	expect(t, OUT_OF_MEMORY, "uselibrary l module");
	expect_held(slice, 600 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_module_from_a_file_is_charged),
		test_with_node(a_library_from_a_file_is_charged_when_it_is_used),
		test_with_node(a_module_with_options_is_charged),
		test_with_node(a_fat_binary_that_does_not_fit_goes_again),
		test_with_node(managed_data_of_a_library_is_held_by_the_quota),
		test_with_node(a_library_stays_loaded_when_another_goes),
	};

	return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
