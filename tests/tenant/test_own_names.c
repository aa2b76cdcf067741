/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that have the driver's names themselves, or ask for others that begin so, are as they were without the library. */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 8192

/* A program of these tests with two arguments, or fewer. A name of a library becomes its path. */
static int run(struct node *node, struct slice *slice, const char *program, const char *library,
	const char *argument, char *ret_text)
{
	char *argv[] = {strdup(node_program(program)),
		library ? strdup(node_program(library)) : NULL, argument ? strdup(argument) : NULL,
		NULL};
	int status = node_run(node, slice, argv, ret_text, TEXT_BYTES);

	for (unsigned i = 0; i < 3; i++)
		free(argv[i]);
	return status;
}

static void expect_as_without(struct node *node, struct slice *slice, const char *library,
	const char *function, char *ret_without)
{
	char with[TEXT_BYTES];

	node->is_without_library = true;
	assert_int_equal(run(node, slice, "route-plugin", library, function, ret_without), 0);
	node->is_without_library = false;
	assert_int_equal(run(node, slice, "route-plugin", library, function, with), 0);
	assert_string_equal(with, ret_without);
}

static void a_plugin_finds_what_it_brought(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[TEXT_BYTES];

	expect_as_without(node, slice, "libplugin.so", "plugin_ask", text);
	assert_non_null(strstr(text, "plugin default curl_easy_init: libpart.so\n"));
	assert_non_null(strstr(text, "plugin next nvmlOwn: libpart.so\n"));
	assert_non_null(strstr(text, "part default cuMemAlloc_v2: driver\n"));
	assert_non_null(strstr(text, "part default cuMemGetInfo_v2: libplugin.so\n"));
	assert_non_null(strstr(text, "plugin next cuMemGetInfo_v2: driver\n"));
	assert_non_null(strstr(text, "part next cuMemFree_v2: driver\n"));
}

static void a_plugin_without_the_driver_finds_none(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[TEXT_BYTES];

	expect_as_without(node, slice, "libpart.so", "own_ask", text);
	assert_non_null(strstr(text, "part default curl_easy_init: libpart.so\n"));
	assert_non_null(strstr(text, "part default cuMemAlloc_v2: none, told\n"));
}

static void stubs_load_the_driver_at_the_first_call(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[TEXT_BYTES];

	assert_int_equal(run(node, slice, "route-lazy", NULL, NULL, text), 0);
	assert_string_equal(text, "7\n");
	assert_int_equal(run(node, slice, "route-fill", "libfill.so", NULL, text), 0);
	assert_string_equal(text, "7\n");
}

static void a_librarys_pointers_stay_its_own(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[TEXT_BYTES];

	assert_int_equal(run(node, slice, "route-fill", "libpointers.so", NULL, text), 0);
	assert_string_equal(text, "7\n");
}

static void a_programs_pointers_and_functions_stay_its_own(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[TEXT_BYTES];

	node->is_loud = true; /* the dynamic linker speaks of the sizes */
	assert_int_equal(run(node, slice, "route-pointers", NULL, NULL, text), 0);
	assert_string_equal(text, "ok 7\n");
}

static void a_program_may_have_a_sanitizer(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char *names = strdup(getenv("TENANT_SANITIZED")), *rest = NULL;
	char text[TEXT_BYTES], program[64];

	for (char *n = strtok_r(names, " ", &rest); n; n = strtok_r(NULL, " ", &rest)) {
		snprintf(program, sizeof(program), "sanitized-%s", n);
		if (run(node, slice, program, NULL, NULL, text) != 0)
			print_message("%s: %s", program, text);
		assert_string_equal(text, "7\n");
	}
	free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_plugin_finds_what_it_brought),
		test_with_node(a_plugin_without_the_driver_finds_none),
		test_with_node(stubs_load_the_driver_at_the_first_call),
		test_with_node(a_librarys_pointers_stay_its_own),
		test_with_node(a_programs_pointers_and_functions_stay_its_own),
		test_with_node(a_program_may_have_a_sanitizer),
	};

	return cmocka_run_group_tests_name("own_names", tests, NULL, NULL);
}
