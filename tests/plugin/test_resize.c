/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes for slices of another size, in a cluster in memory. */
#include <stdio.h>
#include <string.h>

#include "kube/wish.h"
#include "plugin/give.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define HAS   "GPU-a,NVIDIA,1000,10:;"
#define WANTS "GPU-a,NVIDIA,999,10:;"
#define WISH  "{\"c0\": {\"gpumem\": 999}}"

static const struct inventory inventory = {
	.count = 1, .device = {{.uuid = "GPU-a", .total_bytes = UINT64_C(80) << 30}}};
static struct giver giver = {.node = {.config = &town.config, .inventory = &inventory},
	.settings = {.state = "/nonexistent", .version = "none"}};

static void set(const char *name, const char *key, const char *value)
{
	json_object_set_new(
		town_annotations(json_object_get(town.pods, name)), key, json_string(value));
}

/* One that runs with a slice and has a wish; what the API server has of that may be another. */
static void begin(const char *name, bool is_changed_unseen)
{
	char given[512];

	town_bind(name, HAS, (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	town_run(50);
	set(name, WISH_ANNOTATION, WISH);
	town_set_status(name, "Running");
	if (is_changed_unseen)
		set(name, WISH_ANNOTATION, "{}");
}

static void wishes_that_fail_keep_no_other_back(void **state)
{
	unsigned before;

	town_kill_plugin();
	town.giver = &giver;
	town.config.resizes_beyond_limits = true;
	town.config.memory_scaling = town.config.cores_scaling = 1;
	town_start_plugin();
	town_run(100);
	begin("a", true);
	begin("b", true);
	begin("c", false);
	before = town.calls;
	town_run(12000);
	assert_string_equal(town_annotation("c", ASSIGNMENT_ALLOCATED), WANTS);
	assert_string_equal(town_annotation("a", ASSIGNMENT_ALLOCATED), HAS);
	assert_in_range(town.calls - before, 3, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		town_test(wishes_that_fail_keep_no_other_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
