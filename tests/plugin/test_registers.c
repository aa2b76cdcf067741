/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded registrations and what was seen of health, asked of the program. The arguments are the program, the recordings,
 * a library to install and vgpu-sim.
 */
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/plugin/stage.h"
#include "tests/plugin/vectors.h"
#include "tests/unit/cmocka_ready.h"

static const char *program, *recordings, *library, *sim;
static struct vectors vectors;
static bool was_needed[32];

enum how {
	IS_EXIT,  /* ours ends, and says so */
	IS_OFFER, /* ours offers so many slices */
	IS_NONE,  /* the annotation has no device */
	IS_TOLD,  /* the annotation is this */
	IS_SCORE, /* the score is of another board's links */
	IS_NOT_HERE,
};

static const struct row {
	const char *id;
	enum how how;
	const char *value, *reason;
} rows[] = {
	{"reg-badconfig", IS_EXIT, "config.json, line 1",
		"what it would have filtered or scaled would be handed out"},
	{"reg-mode-odd", IS_EXIT, "operatingmode", "there is no such mode"},
	{"reg-noyaml", IS_EXIT, "device-config.yaml, line", "theirs ends, too"},
	{"reg-absent-deviceSplitCount", IS_OFFER, "10", "D32: a missing key has a default"},
	{"reg-absent-deviceMemoryScaling", IS_OFFER, "2", "D32"},
	{"reg-absent-deviceCoreScaling", IS_OFFER, "2", "D32"},
	{"reg-override2", IS_TOLD, "\"mode\":\"hami-core\"",
		"without a mode in the file it has a name, too"},
	{"reg-override0", IS_TOLD, "\"mode\":\"hami-core\"", "the same"},
	{"reg-filter-index", IS_TOLD, "\"mode\":\"hami-core\"", "the same"},
	{"reg-preferred", IS_TOLD, "\"mode\":\"hami-core\"", "the same"},
	{"reg-mem0", IS_NONE, NULL, "of a device without memory nothing can be handed out"},
	{"reg-filter-all-stale", IS_NONE, NULL, "theirs leaves what was registered before"},
	{"reg-lost", IS_NOT_HERE, NULL, "D9: test_health loses a device under the program's parts"},
	{"reg-nomem", IS_NOT_HERE, NULL, "the simulated driver tells a device's memory always"},
	{"reg-preconf", IS_NOT_HERE, NULL, "the same"},
	{"reg-resource", IS_OFFER, "4", "recorded is the default resource, of which it has none"},
	{"reg-score*", IS_SCORE, NULL, "the boards' links are not the recorded ones: test_score"},
};

static const struct row *find(const char *id, enum how how)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].how == how && !fnmatch(rows[i].id, id, 0)) {
			was_needed[i] = true;
			return &rows[i];
		}
	return NULL;
}

static void set_environment(const json_t *config)
{
	const json_t *environment = json_object_get(config, "env");
	const char *name;
	json_t *value;

	setenv("NODE_NAME", STAGE_NODE, 1);
	unsetenv("ENABLE_TOPOLOGY_SCORE");
	json_object_foreach((json_t *)environment, name, value)
	{
		if (json_is_string(value))
			setenv(name, json_string_value(value), 1);
		else
			unsetenv(name);
	}
}

static const char *flags_of(const json_t *config, const char *flags[8])
{
	const json_t *list = json_object_get(config, "flags");
	size_t count = json_array_size(list);

	assert_true(count < 8);
	for (size_t i = 0; i < count; i++)
		flags[i] = json_string_value(json_array_get(list, i));
	flags[count] = NULL;
	return NULL;
}

/* By the index, which the first has not; theirs comes in the order of a map (D6). */
static void sort(json_t *list)
{
	for (size_t i = 0; i + 1 < json_array_size(list); i++)
		for (size_t k = json_array_size(list) - 1; k > i; k--) {
			json_t *a = json_incref(json_array_get(list, k - 1));
			json_t *b = json_incref(json_array_get(list, k));
			bool is_wrong = json_integer_value(json_object_get(a, "index")) >
					json_integer_value(json_object_get(b, "index"));

			if (is_wrong) {
				json_array_set(list, k - 1, b);
				json_array_set(list, k, a);
			}
			json_decref(a);
			json_decref(b);
		}
}

/* The annotations are the same, device by device and key by key. */
static void compare_register(const char *id, const json_t *vector)
{
	const char *theirs =
		vector_text(json_object_get(vector, "node_annotations"), STAGE_REGISTER);
	const struct row *row = find(id, IS_TOLD);
	_cleanup_free_ char *ours = NULL;
	json_t *a, *b;

	for (unsigned i = 0; i < 1500 && theirs && (!ours || strstr(ours, "GPU-old")); i++) {
		stage_run(20);
		free(ours);
		ours = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	}
	if (!theirs && !strcmp(id, "reg-filter-all"))
		return; /* ours says that there is none */
	if (!theirs)
		ours = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	if (!theirs || !ours) {
		if (theirs || ours)
			fail_msg("%s: only one of the two is registered", id);
		return;
	}
	a = json_loads(ours, 0, NULL);
	b = json_loads(theirs, 0, NULL);
	for (size_t i = 0; row && strstr(ours, row->value) && i < json_array_size(b); i++)
		json_object_set_new(json_array_get(b, i), "mode", json_string("hami-core"));
	if (find(id, IS_NONE)) {
		assert_string_equal(ours, "[]");
		json_array_clear(b);
	}
	sort(a);
	sort(b);
	if (!json_equal(a, b))
		fail_msg("%s: registered is %s, theirs %s", id, ours, theirs);
	json_decref(a);
	json_decref(b);
}

static void compare_list(const char *id, const json_t *vector)
{
	const json_t *lists = json_object_get(vector, "list_and_watch");
	const json_t *theirs = json_array_get(lists, 0);

	if (!theirs)
		return;
	assert_int_equal(stage.list->n_devices, json_array_size(theirs));
	for (size_t i = 0; i < stage.list->n_devices; i++) {
		const V1beta1__Device *device = stage.list->devices[i];
		size_t k = 0;

		while (k < json_array_size(theirs) &&
			strcmp(vector_text(json_array_get(theirs, k), "ID"), device->id) != 0)
			k++;
		if (k == json_array_size(theirs))
			fail_msg("%s: theirs has no %s", id, device->id);
		assert_string_equal(
			device->health, vector_text(json_array_get(theirs, k), "health"));
	}
}

static void compare_offer(const char *id, const json_t *vector)
{
	const json_t *asked = json_array_get(json_object_get(vector, "register"), 0);
	const struct row *row = find(id, IS_OFFER);
	const char *expected = row ? row->value : vector_text(vector, "allocatable");
	char number[16];

	snprintf(number, sizeof(number), "%zu", stage.list->n_devices);
	if (expected)
		assert_string_equal(number, expected);
	if (!asked || row)
		return;
	assert_string_equal(stage.version, vector_text(asked, "version"));
	assert_string_equal(stage.endpoint, vector_text(asked, "endpoint"));
	assert_string_equal(stage.resource, vector_text(asked, "resource_name"));
}

static void replay(const json_t *vector)
{
	const char *id = vector_text(vector, "id"), *flags[8];
	const json_t *config = json_object_get(vector, "config");
	_cleanup_free_ char *device = NULL, *node = NULL;
	const struct row *row = find(id, IS_EXIT);

	vector_make_files(vector, &device, &node);
	stage_configure(device, node);
	set_environment(config);
	setenv("VGPU_SIM_BOARD", vector_text(vector, "board"), 1);
	setenv("VGPU_SIM_STATE", stage_path(id), 1);
	apiserver_annotate_node(&stage.api, STAGE_REGISTER,
		strcmp(id, "reg-filter-all-stale") ? NULL : "[{\"id\":\"GPU-old\"}]");
	flags_of(config, flags);
	if (row) {
		stage_spawn(flags);
		assert_int_equal(stage_stop(0), 2);
		assert_true(stage_has_said(row->value));
		return;
	}
	stage_start(flags);
	stage_watch();
	assert_int_equal(stage.is_preferring,
		json_is_true(json_object_get(
			json_object_get(
				json_array_get(json_object_get(vector, "register"), 0), "options"),
			"get_preferred_allocation_available")));
	if (!find(id, IS_OFFER))
		compare_register(id, vector);
	compare_list(id, vector);
	compare_offer(id, vector);
	assert_int_equal(stage_stop(SIGTERM), 0);
}

static void each_recorded_registration_is_made_so_or_better(void **state)
{
	unsigned count = 0;

	for (size_t i = 0; i < vectors.count; i++) {
		const char *id = vector_text(vectors.all[i], "id");

		if (strcmp(vector_text(vectors.all[i], "kind"), "register") != 0)
			continue;
		count++;
		if (!json_object_get(vectors.all[i], "config") || find(id, IS_NOT_HERE))
			continue;
		(void)find(id, IS_SCORE);
		replay(vectors.all[i]);
	}
	assert_int_equal(count, 34);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!was_needed[i])
			fail_msg(
				"no recording needs the row of %s: %s", rows[i].id, rows[i].reason);
}

/* ----- health ----- */

static bool is_unhealthy(const char *uuid)
{
	unsigned sick = 0, of = 0;

	for (size_t i = 0; i < stage.list->n_devices; i++)
		if (!strncmp(stage.list->devices[i]->id, uuid, strlen(uuid))) {
			sick += !strcmp(stage.list->devices[i]->health, "Unhealthy");
			of++;
		}
	return sick == of;
}

static bool is_first_unhealthy(void)
{
	return is_unhealthy(VECTOR_GPU0);
}

static bool is_registered_unhealthy(void)
{
	_cleanup_free_ char *text = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;
	bool is = json_array_size(list) == 2 &&
		  !json_object_get(json_array_get(list, 0), "health") &&
		  json_is_true(json_object_get(json_array_get(list, 1), "health"));

	json_decref(list);
	return is;
}

static void cause(const char *what)
{
	char command[STAGE_PATH_BYTES];

	snprintf(command, sizeof(command), "%s event %s >/dev/null", sim, what);
	assert_int_equal(system(command), 0);
}

/* The driver tells those that listen by then. */
static bool fails_and_is_unhealthy(void)
{
	cause("xid 79");
	stage_run(500);
	return is_first_unhealthy();
}

/* health-ignored-xid, health-xid79, health-alloc-unhealthy, health-restart */
static void health_is_as_recorded_and_allocate_looks_at_it(void **state)
{
	const char *id = VECTOR_GPU1 "-0";
	struct stage_answer answer;

	set_environment(NULL);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	setenv("VGPU_SIM_STATE", stage_path("machine"), 1);
	stage_configure("nvidia:\n  deviceSplitCount: 3\n", NULL);
	stage_start(NULL);
	stage_watch();
	stage_run(300);
	cause("xid 31");
	stage_run(1000);
	assert_false(is_unhealthy(VECTOR_GPU0));
	stage_await(fails_and_is_unhealthy, 30);
	assert_false(is_unhealthy(VECTOR_GPU1));
	stage_await(is_registered_unhealthy, 30);
	stage_bind("p", "8f3c1f0e-2b7a-4a61-9d0f-000000000001", VECTOR_GPU0 ",NVIDIA,3000,30:;",
		"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"3000\",\"nvidia.com/"
		"gpucores\":\"30\"}");
	stage_allocate(&id, 1, &answer);
	assert_int_not_equal(answer.status, 0);
	assert_non_null(strstr(answer.words, "not healthy"));
	stage_unbind("p", "Failed");
	stage_stop(SIGTERM);
	stage_start(NULL);
	stage_watch();
	assert_false(is_unhealthy(VECTOR_GPU0));
}

static int setup(void **state)
{
	vectors_open(recordings, &vectors);
	return stage_begin(state, program, library);
}

static int teardown(void **state)
{
	vectors_close(&vectors);
	return stage_end(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(each_recorded_registration_is_made_so_or_better),
		TEST(health_is_as_recorded_and_allocate_looks_at_it),
	};

	if (argc != 5)
		return 2;
	program = argv[1];
	recordings = argv[2];
	library = argv[3];
	sim = argv[4];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
