/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever way a program finds the driver's functions, it finds the quota too. */
#include "tests/tenant/tenant.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"

#define TABLE_BYTES (8 * MIB)

static const char *const doors[] = {"linked", "linked-thread", "dlopen", "default", "next",
	"procaddr", "procaddr-thread", "procaddr-v1", "found-dlopen", "found-procaddr",
	"found-procaddr-thread", "found-procaddr-v1"};
#define DOORS (sizeof(doors) / sizeof(doors[0]))

static void the_quota_holds_through_every_door(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);

	for (unsigned i = 0; i < DOORS; i++) {
		struct tenant *t = tenant_start(node, slice, doors[i], NULL);

		expect(t, OK, "primary 0");
		expect(t, OUT_OF_MEMORY, "fill 64m");
		if (tenant_number(t, "count") != 7)
			print_message("door %s\n", doors[i]);
		assert_int_equal(tenant_number(t, "count"), 7);
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 448 * MIB);
		expect(t, OK, "drop");
		expect(t, OK, "async a 256m");
		expect(t, OUT_OF_MEMORY, "async b 256m");
		expect(t, OK, "info");
		assert_int_equal(tenant_number(t, "total"), GIB);
		expect(t, OK, "freeasync a");
		expect(t, OK, "streamsync");
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void every_door_gives_our_function_for_a_hooked_name(void **state)
{
	static const char *const names[] = {"cuInit", "cuMemAlloc_v2", "cuMemFree_v2",
		"cuMemAllocAsync", "cuMemFreeAsync", "cuMemAllocFromPoolAsync", "cuMemCreate",
		"cuMemGetInfo_v2", "cuDeviceTotalMem_v2", "cuCtxCreate_v2", "cuMemsetD8_v2",
		"cuMemcpyAsync", "cuMemcpyHtoD_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpy2DAsync_v2",
		"cuStreamDestroy_v2"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);

	for (unsigned i = 0; i < DOORS; i++) {
		struct tenant *t = tenant_start(node, slice, doors[i], NULL);

		for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			expect(t, 0, "owner %s", names[n]);
			if (strcmp(t->answer, " owner=libvgpu.so") != 0)
				print_message("door %s: %s%s\n", doors[i], names[n], t->answer);
			assert_string_equal(t->answer, " owner=libvgpu.so");
		}
		assert_int_equal(tenant_end(t), 0);
	}
}

static void a_function_that_is_not_hooked_is_the_drivers(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);

	for (unsigned i = 0; i < DOORS; i++) {
		struct tenant *t = tenant_start(node, slice, doors[i], NULL);

		expect(t, 0, "owner cuMemSetAccess");
		assert_null(strstr(t->answer, "libvgpu"));
		assert_int_equal(tenant_end(t), 0);
	}
}

static void run_table(struct node *node, struct slice *slice, const char *argument, char *ret_text)
{
	char *argv[] = {
		strdup(node_program("route-table")), argument ? strdup(argument) : NULL, NULL};
	int status = node_run(node, slice, argv, ret_text, TABLE_BYTES);

	free(argv[0]);
	free(argv[1]);
	assert_int_equal(status, 0);
}

static void print_difference(const char *a, const char *b)
{
	while (*a && *b) {
		size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");

		if (la != lb || memcmp(a, b, la) != 0)
			print_message("without: %.*s\nwith:    %.*s\n", (int)la, a, (int)lb, b);
		a += la + (a[la] != '\0');
		b += lb + (b[lb] != '\0');
	}
}

static void every_version_and_flag_leads_to_the_same_symbol_as_without_the_library(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	_cleanup_free_ char *with = malloc(TABLE_BYTES), *without = malloc(TABLE_BYTES);

	node->is_without_library = true;
	run_table(node, slice, NULL, without);
	node->is_without_library = false;
	run_table(node, slice, NULL, with);
	assert_non_null(strstr(without, "v2 cuMemAlloc 3020 0: 0 cuMemAlloc_v2 status 0"));
	assert_non_null(strstr(without, "v1 cuMemAllocAsync 13000 2: 0 cuMemAllocAsync_ptsz"));
	assert_null(strstr(with, " other"));
	if (strcmp(with, without) != 0)
		print_difference(without, with);
	assert_string_equal(with, without);
}

static void run_nothing(struct node *node, struct slice *slice, char *when, char *ret_output)
{
	char *argv[] = {strdup(node_program("route-nothing")), when, NULL};

	assert_int_equal(node_run(node, slice, argv, ret_output, TABLE_BYTES), 0);
	free(argv[0]);
}

static void a_call_of_nothing_is_answered_as_without_the_library(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	_cleanup_free_ char *with = malloc(TABLE_BYTES), *without = malloc(TABLE_BYTES);
	char later[] = "later", *when[] = {NULL, later};

	for (unsigned i = 0; i < 2; i++) {
		node->is_without_library = true;
		run_nothing(node, slice, when[i], without);
		node->is_without_library = false;
		run_nothing(node, slice, when[i], with);
		assert_non_null(strstr(without, "\ncuMemAlloc_v2: "));
		assert_null(strstr(without, "no context"));
		if (strcmp(with, without) != 0)
			print_difference(without, with);
		assert_string_equal(with, without);
	}
}

static void every_row_of_the_hook_table_is_found_in_our_library(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	_cleanup_free_ char *owners = malloc(TABLE_BYTES);
	char *rest = NULL;

	run_table(node, slice, "owners", owners);
	for (char *l = strtok_r(owners, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest)) {
		if (!strstr(l, " libvgpu.so"))
			print_message("%s\n", l);
		assert_non_null(strstr(l, " libvgpu.so"));
	}
}

static void another_preloaded_library_finds_us_behind_it(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char *outer = strdup(node_program("libouter.so"));
	char *argv[] = {strdup(node_program("route-next")), NULL}, output[512];

	node->preload_first = outer;
	assert_int_equal(node_run(node, slice, argv, output, sizeof(output)), 0);
	assert_string_equal(output, "first\nblocks=7 result=2 outer-allocs=8 outer-prints=1\n");
	node->preload_first = NULL;
	free(argv[0]);
	free(outer);
}

static void another_preloaded_library_behind_us_does_not_find_itself(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char *outer = strdup(node_program("libouter.so"));
	char *argv[] = {strdup(node_program("route-next")), NULL}, output[512];

	node->preload_last = outer;
	assert_int_equal(node_run(node, slice, argv, output, sizeof(output)), 0);
	assert_string_equal(output, "first\nblocks=7 result=2 outer-allocs=0 outer-prints=1\n");
	node->preload_last = NULL;
	free(argv[0]);
	free(outer);
}

static void run_own(struct node *node, struct slice *slice, const char *driver)
{
	char *argv[] = {strdup(node_program("route-own")), strdup(node_program("libown.so")),
		driver ? strdup(driver) : NULL, NULL};
	char output[512];
	int status = node_run(node, slice, argv, output, sizeof(output));

	for (unsigned i = 0; i < 3; i++)
		free(argv[i]);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void another_librarys_function_of_that_name_is_left_alone(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);

	run_own(node, slice, NULL);
	run_own(node, slice, "libcuda.so.1");
}

static void a_function_that_the_driver_lacks_stays_absent(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char *argv[] = {strdup(node_program("route-absent")), NULL}, output[1024], folder[512];

	snprintf(folder, sizeof(folder), "%s", node_program("libcuda.so.1"));
	*strrchr(folder, '/') = '\0';
	node->driver = folder;
	node->is_without_library = true;
	assert_int_equal(node_run(node, slice, argv, output, sizeof(output)), 0);
	node->is_without_library = false;
	/* such a driver cannot be accounted for; what it says about that is not this test's */
	node->is_loud = true;
	node_run(node, NULL, argv, output, sizeof(output));
	assert_string_equal(output, "");
	free(argv[0]);
}

static void a_program_without_cuda_is_as_it_was(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char *argv[] = {strdup(node_program("plain")), node->dir, NULL};
	char without[4096], with[4096];
	struct stat st;

	node->is_without_library = true;
	assert_int_equal(node_run(node, slice, argv, without, sizeof(without)), 0);
	node->is_without_library = false;
	assert_int_equal(node_run(node, slice, argv, with, sizeof(with)), 0);
	assert_non_null(strstr(without, "\nThreads:\t1\n"));
	assert_null(strstr(with, "libcuda"));
	assert_string_equal(with, without);
	assert_int_equal(stat(slice->region, &st), -1);
	free(argv[0]);
}

/* The kernel's words, by which the C library is found, are no more right behind the environment then. */
static void a_library_may_take_out_variables_before_us(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char shorter[PATH_MAX];
	struct tenant *t;

	snprintf(shorter, sizeof(shorter), "%s", node_program("libshorter.so"));
	node->preload_last = shorter;
	t = tenant_new(slice);
	node->preload_last = NULL;
	expect(t, OK, "alloc a 400m");
	expect(t, OUT_OF_MEMORY, "alloc b 400m");
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(the_quota_holds_through_every_door),
		test_with_node(every_door_gives_our_function_for_a_hooked_name),
		test_with_node(a_function_that_is_not_hooked_is_the_drivers),
		test_with_node(
			every_version_and_flag_leads_to_the_same_symbol_as_without_the_library),
		test_with_node(a_call_of_nothing_is_answered_as_without_the_library),
		test_with_node(every_row_of_the_hook_table_is_found_in_our_library),
		test_with_node(another_preloaded_library_finds_us_behind_it),
		test_with_node(another_preloaded_library_behind_us_does_not_find_itself),
		test_with_node(a_library_may_take_out_variables_before_us),
		test_with_node(another_librarys_function_of_that_name_is_left_alone),
		test_with_node(a_function_that_the_driver_lacks_stays_absent),
		test_with_node(a_program_without_cuda_is_as_it_was),
	};

	return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
