/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for its running slices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/wish.h"
#include "tests/unit/cmocka_ready.h"

static const char *const names[] = {"first", "plain", "main", "side"};
static const struct assignment_need needs[] = {{1, true}, {0, false}, {2, false}, {1, false}};
#define SIDE_IS_PART \
	"G0,NVIDIA,100,10:;;G0,NVIDIA,200,20:G1,NVIDIA,200,20:;G1[1g.10gb-0],NVIDIA,300,0:;"
#define ALLOCATED "G0,NVIDIA,100,10:;;G0,NVIDIA,200,20:G1,NVIDIA,200,20:;G1,NVIDIA,300,0:;"

/* The allocation, as the wish has it; NULL: it is refused. The caller frees it. */
static char *apply(const char *wish, const char *allocated)
{
	struct wish_pod pod = {wish, allocated, names, needs, 4};
	struct wish_slots slots = WISH_SLOTS_NULL;
	struct err err = ERR_NULL;
	char *text = NULL;
	int r = wish_apply(&pod, &slots, &err);

	if (r)
		assert_true(r == -EINVAL && err.text[0]);
	else
		assert_int_equal(assignment_encode(&slots.assignment, &text), 0);
	wish_clear_slots(&slots);
	return text;
}

static void check(const char *wish, const char *should_be)
{
	char *is = apply(wish, ALLOCATED);

	if (!is || !should_be)
		assert_ptr_equal(is, should_be);
	else
		assert_string_equal(is, should_be);
	free(is);
}

static void each_device_of_the_container_has_the_amounts(void **state)
{
	check("{}", ALLOCATED);
	check("{\"main\": {\"gpumem\": 4000, \"gpucores\": 50}}",
		"G0,NVIDIA,100,10:;;G0,NVIDIA,4000,50:G1,NVIDIA,4000,50:;G1,NVIDIA,300,0:;");
	check("{\"first\": {\"gpumem\": 50}, \"side\": {\"gpucores\": 100}}",
		"G0,NVIDIA,50,10:;;G0,NVIDIA,200,20:G1,NVIDIA,200,20:;G1,NVIDIA,300,100:;");
}

/* Not one word of it is followed then. */
static void what_is_not_understood_is_refused(void **state)
{
	static const char *const wishes[] = {"", "x", "[]", "null", "{\"main\": 4000}",
		"{\"main\": {}, \"main\": {}}", "{\"main\": {\"gpumem\": 0}}",
		"{\"main\": {\"gpumem\": -1}}", "{\"main\": {\"gpumem\": 4000.5}}",
		"{\"main\": {\"gpumem\": \"4000\"}}", "{\"main\": {\"gpumem\": 2147483648}}",
		"{\"main\": {\"gpucores\": 101}}", "{\"main\": {\"gpucores\": 0}}",
		"{\"plain\": {\"gpumem\": 1}}", "{\"nobody\": {\"gpumem\": 1}}", "{\"\": {}}",
		"{\"main\": {\"gpumem\": 1}, \"nobody\": {}}"};
	char *large = malloc(70000);

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
		check(wishes[i], NULL);
	assert_non_null(large);
	memset(large, ' ', 70000);
	memcpy(large, "{}", 2);
	large[69999] = '\0';
	check(large, NULL);
	free(large);
}

static void parts_and_pods_without_slices_do_not_change(void **state)
{
	assert_null(apply("{\"main\": {\"gpumem\": 1}}", NULL));
	assert_null(apply("{\"main\": {\"gpumem\": 1}}", ""));
	assert_null(apply("{\"main\": {\"gpumem\": 1}}", "G0,NVIDIA,broken,20:;"));
	assert_null(apply("{\"side\": {\"gpumem\": 1}}",
		"G0,NVIDIA,100,10:;;G0,NVIDIA,200,20:G1,NVIDIA,200,"
		"20:;G1[1g.10gb-0],NVIDIA,300,0:;"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_device_of_the_container_has_the_amounts),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(parts_and_pods_without_slices_do_not_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
