/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances that a scheduler was recorded to reserve, asked of the program on a simulated node. The arguments are the program, a
 * library to install and the recordings.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/instances.h"
#include "tests/plugin/cut_node.h"
#include "tests/unit/cmocka_ready.h"

static const char *recordings;

/* The instance of each entry is exactly where the entry says. */
static void assert_places(const char *text)
{
	struct instances list;
	struct err err = ERR_NULL;

	assert_int_equal(instances_decode(text, &list, &err), 0);
	for (size_t i = 0; i < list.count; i++)
		if (!*cut_instance(0, list.at[i].profile, list.at[i].start))
			fail_msg("there is no instance %zu of %s", i, text);
	assert_int_equal(cut_count(0), list.count);
	instances_deinit(&list);
}

static void replace_all(char *text, const char *what, const char *by)
{
	assert_int_equal(strlen(what), strlen(by));
	for (char *at = text; (at = strstr(at, what)); at += strlen(by))
		memcpy(at, by, strlen(by));
}

static json_t *pod_of(const json_t *row, const json_t *annotations)
{
	json_t *pod = json_deep_copy(json_object_get(row, "pod"));
	json_t *metadata = json_object_get(pod, "metadata");

	json_object_set_new(metadata, "uid", json_string(CUT_UID "r"));
	json_object_set_new(metadata, "namespace", json_string("default"));
	json_object_set_new(metadata, "name", json_string("r"));
	json_object_set_new(metadata, "creationTimestamp", json_string("2026-11-22T00:00:00Z"));
	json_object_set_new(metadata, "annotations",
		json_pack("{s:s,s:s,s:s,s:O,s:O,s:O}", "hami.io/vgpu-node", STAGE_NODE,
			"hami.io/bind-time", "1", CUT_PHASE, "allocating",
			"hami.io/vgpu-devices-allocated",
			json_object_get(annotations, "hami.io/vgpu-devices-allocated"),
			"hami.io/vgpu-devices-to-allocate",
			json_object_get(annotations, "hami.io/vgpu-devices-to-allocate"),
			INSTANCES_ANNOTATION, json_object_get(annotations, INSTANCES_ANNOTATION)));
	json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(STAGE_NODE));
	json_object_set_new(pod, "status", json_pack("{s:s}", "phase", "Pending"));
	return pod;
}

/* All containers in the kubelet's order. */
static void allocate_all(const json_t *pod)
{
	static const char *const lists[] = {"initContainers", "containers"};
	const json_t *spec = json_object_get(pod, "spec"), *container;
	size_t at;

	for (unsigned i = 0; i < 2; i++)
		json_array_foreach(json_object_get(spec, lists[i]), at, container)
		{
			const char *count = json_string_value(json_object_get(
				json_object_get(json_object_get(container, "resources"), "limits"),
				"nvidia.com/gpu"));
			struct stage_answer answer;

			if (!count)
				continue;
			cut_allocate(0, (unsigned)strtoul(count, NULL, 10), &answer);
			if (answer.status)
				fail_msg("%s", answer.words);
			stage_answer_free(&answer);
		}
}

/* Of one card that this board has, too. */
static bool is_for_us(const char *text)
{
	struct instances list;
	struct err err = ERR_NULL;
	bool is = text && !instances_decode(text, &list, &err);

	for (size_t i = 0; is && i < list.count; i++)
		is = strcmp(list.at[i].gpu, list.at[0].gpu) == 0 &&
		     (strstr(list.at[i].profile, "g.10gb") ||
			     strstr(list.at[i].profile, "g.20gb") ||
			     strstr(list.at[i].profile, "g.40gb") ||
			     strstr(list.at[i].profile, "g.80gb"));
	if (text)
		instances_deinit(&list);
	return is;
}

static unsigned replay(char *line)
{
	json_t *row = json_loads(line, 0, NULL), *pod;
	const json_t *annotations = json_object_get(json_object_get(row, "result"), "annotations");
	const char *text = json_string_value(json_object_get(annotations, INSTANCES_ANNOTATION));
	struct instances list;
	struct err err = ERR_NULL;
	bool is = is_for_us(text);

	if (is) {
		assert_int_equal(instances_decode(text, &list, &err), 0);
		replace_all(line, list.at[0].gpu, cut.gpus[0]);
		instances_deinit(&list);
		json_decref(row);
		row = json_loads(line, 0, NULL);
		annotations = json_object_get(json_object_get(row, "result"), "annotations");
		pod = pod_of(row, annotations);
		cut_bind_pod("r", json_deep_copy(pod));
		allocate_all(pod);
		json_decref(pod);
		assert_places(
			json_string_value(json_object_get(annotations, INSTANCES_ANNOTATION)));
		assert_true(cut_is_annotated("r", CUT_PHASE, "success"));
		apiserver_delete_pod(&stage.api, "r");
		cut_await_counts(0, 0, 30);
	}
	json_decref(row);
	return is;
}

static void what_was_recorded_is_made_as_it_says(void **state)
{
	_cleanup_file_ FILE *file = fopen(recordings, "re");
	_cleanup_free_ char *line = NULL;
	unsigned count = 0;
	size_t size = 0;

	machine_close(cut.machine);
	stage_write("machine", NULL);
	cut_take_machine("h100");
	stage_start(NULL);
	assert_non_null(file);
	while (getline(&line, &size, file) > 0)
		count += replay(line);
	assert_true(count >= 7);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cut_setup, cut_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_recorded_is_made_as_it_says),
	};

	if (argc != 4)
		return 2;
	cut_set_files(argv[1], argv[2]);
	recordings = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
