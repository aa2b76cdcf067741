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

/* The same with one argument, which no library's path takes the place of. */
static int run_as_is(struct node *node, struct slice *slice, const char *program,
	const char *argument, char *ret_text)
{
	char *argv[] = {strdup(node_program(program)), argument ? strdup(argument) : NULL, NULL};
	int status = node_run(node, slice, argv, ret_text, TEXT_BYTES);

	free(argv[0]);
	free(argv[1]);
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

static void what_may_do_without_the_driver_does(void **state)
{
	static const char *const programs[] = {"route-optional-lazy", "route-optional-now"};
	static const char *const drivers[] = {NULL, "libcuda.so.1", "libnvidia-ml.so.1"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char with[TEXT_BYTES], without[TEXT_BYTES];

	for (unsigned i = 0; i < 6; i++) {
		node->is_without_library = true;
		assert_int_equal(
			run_as_is(node, slice, programs[i % 2], drivers[i / 2], without), 0);
		node->is_without_library = false;
		assert_int_equal(run_as_is(node, slice, programs[i % 2], drivers[i / 2], with), 0);
		assert_string_equal(with, without);
		assert_int_equal(
			strncmp(with, "no data, no NVML\nno CUDA\nno data, no NVML\nno CUDA\n", 46),
			0);
	}
}

static void what_may_do_without_the_driver_and_has_it_has_the_quota(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[TEXT_BYTES];

	assert_int_equal(run_as_is(node, slice, "route-optional-driver", NULL, text), 0);
	assert_string_equal(text, "data, NVML\n0 2\n7\ndata, NVML\n0 2\n0\n");
	assert_int_equal(run_as_is(node, slice, "route-optional-stubs", NULL, text), 0);
	assert_string_equal(text, "data, no NVML\n7\ndata, no NVML\n0\n");
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

/* One that says little of each process is found first, by its folder; and is asked before there is a driver, or not. */
static void the_nvml_that_counts_is_the_drivers(void **state)
{
	static const char *const own[] = {NULL, "../hostile/own_nvml/libnvidia-ml.so.1"};
	struct node *node = *state;
	static char folder[600];
	char text[TEXT_BYTES];

	snprintf(folder, sizeof(folder), "%s", node_program(own[1]));
	*strrchr(folder, '/') = '\0';
	node->driver = folder;
	for (unsigned i = 0; i < 2; i++) {
		struct slice *slice = slice_new(node, i ? "b" : "a", "2g", NULL);

		slice->slack_bytes = 512 * MIB; /* while a module is loaded */
		assert_int_equal(run(node, slice, "route-nvml", own[i], NULL, text), 0);
		assert_string_equal(text, "2\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_plugin_finds_what_it_brought),
		test_with_node(a_plugin_without_the_driver_finds_none),
		test_with_node(stubs_load_the_driver_at_the_first_call),
		test_with_node(a_librarys_pointers_stay_its_own),
		test_with_node(a_programs_pointers_and_functions_stay_its_own),
		test_with_node(what_may_do_without_the_driver_does),
		test_with_node(what_may_do_without_the_driver_and_has_it_has_the_quota),
		test_with_node(a_program_may_have_a_sanitizer),
		test_with_node(the_nvml_that_counts_is_the_drivers),
	};

	return cmocka_run_group_tests_name("own_names", tests, NULL, NULL);
}
