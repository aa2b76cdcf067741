/* SPDX-License-Identifier: Apache-2.0 */
/* The annotation of reserved instances: what writers have written, and what none means. The first argument is a scheduler's recordings. */
#include "kube/instances.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cmocka_ready.h"

#define PLACE  "\"placement\":{\"start\":3,\"size\":1}"
#define REST   "\"deviceIndex\":0,\"gpuUUID\":\"GPU-a\",\"profile\":\"1g.10gb\"," PLACE
#define ENTRY  "{\"containerIndex\":0," REST "}"
#define SECOND "{\"containerIndex\":1," REST "}"
#define GIVEN                         \
	"{\"containerIndex\":1," REST \
	",\"migUUID\":\"MIG-b\",\"gpuInstanceID\":9,\"computeInstanceID\":0}"

static const char *recordings;

static void round_trip(const char *text)
{
	struct instances list = INSTANCES_NULL;
	struct err err = ERR_NULL;
	char *made = NULL;

	if (instances_decode(text, &list, &err))
		fail_msg("'%s': %s", text, err.text);
	assert_int_equal(instances_encode(&list, &made), 0);
	assert_string_equal(made, text);
	instances_deinit(&list);
	instances_deinit(&list);
	free(made);
}

static void what_is_written_is_read_as_it_is(void **state)
{
	struct instances list = INSTANCES_NULL;
	struct err err = ERR_NULL;

	round_trip("[]");
	round_trip("[" ENTRY "]");
	round_trip("[" ENTRY "," GIVEN "]");
	assert_int_equal(instances_decode("[" ENTRY "," GIVEN "]", &list, &err), 0);
	assert_int_equal(list.count, 2);
	assert_false(list.at[0].is_given);
	assert_int_equal(list.at[0].start, 3);
	assert_true(list.at[1].is_given);
	assert_int_equal(list.at[1].container, 1);
	assert_int_equal(list.at[1].instance, 9);
	assert_string_equal(list.at[1].uuid, "MIG-b");
	assert_string_equal(list.at[1].profile, "1g.10gb");
	instances_deinit(&list);
	assert_int_equal(instances_decode("", &list, &err), 0);
	assert_int_equal(list.count, 0);
	instances_deinit(&list);
	assert_int_equal(instances_decode(NULL, &list, &err), 0);
	instances_deinit(&list);
	/* a key of a later version */
	assert_int_equal(
		instances_decode("[{\"new\":1,\"containerIndex\":0," REST "}]", &list, &err), 0);
	assert_int_equal(list.count, 1);
	instances_deinit(&list);
}

static void what_was_recorded_stays_as_it_is(void **state)
{
	FILE *file = fopen(recordings, "re");
	char *line = NULL;
	size_t size = 0, count = 0;

	assert_non_null(file);
	while (getline(&line, &size, file) > 0) {
		json_t *row = json_loads(line, 0, NULL);
		const char *text = json_string_value(json_object_get(
			json_object_get(json_object_get(row, "result"), "annotations"),
			INSTANCES_ANNOTATION));

		if (text) {
			round_trip(text);
			count++;
		}
		json_decref(row);
	}
	free(line);
	fclose(file);
	assert_true(count >= 10);
}

static void what_is_none_is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {{"{}", "no list"}, {"[", "no list"}, {"x", "no list"}, {"null", "no list"},
		{"[1]", "entry 0 is no object"}, {"[{" REST "}]", "containerIndex"},
		{"[{\"containerIndex\":-1," REST "}]", "containerIndex"},
		{"[{\"containerIndex\":\"0\"," REST "}]", "containerIndex"},
		{"[{\"containerIndex\":99999999999999," REST "}]", "containerIndex"},
		{"[" ENTRY ",{\"containerIndex\":0,\"deviceIndex\":-1}]",
			"entry 1 has no deviceIndex"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"\"}]", "gpuUUID"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a/../b\"}]", "gpuUUID"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a,b\"}]", "gpuUUID"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a\",\"profile\":\"\"}]",
			"profile"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a\",\"profile\":"
		 "\"1g.10gb1g.10gb1g.10gb1g.10gb\"}]",
			"profile"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a\",\"profile\":\"b\"}]",
			"placement"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a\",\"profile\":\"b\","
		 "\"placement\":{\"start\":0,\"size\":0}}]",
			"placement"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a\",\"profile\":\"b\","
		 "\"placement\":{\"start\":-1,\"size\":1}}]",
			"placement"},
		{"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"a\",\"profile\":\"b\","
		 "\"placement\":{\"start\":0,\"size\":4294967297}}]",
			"placement"},
		{"[{\"containerIndex\":0," REST ",\"migUUID\":\"MIG-b\"}]", "not all of"},
		{"[{\"containerIndex\":0," REST ",\"gpuInstanceID\":1,\"computeInstanceID\":0}]",
			"not all of"},
		{"[{\"containerIndex\":0," REST
		 ",\"migUUID\":\"a b\",\"gpuInstanceID\":1,\"computeInstanceID\":0}]",
			"migUUID that is no name"},
		{"[{\"containerIndex\":0," REST
		 ",\"migUUID\":\"a\",\"gpuInstanceID\":-1,\"computeInstanceID\":0}]",
			"gpuInstanceID"},
		{"[" ENTRY "," ENTRY "]", "entry 1 is for a device that another is for"},
		{"[{\"containerIndex\":0,\"containerIndex\":1," REST "}]", "no list"}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct instances list = INSTANCES_NULL;
		struct err err = ERR_NULL;

		assert_int_equal(instances_decode(rows[i].text, &list, &err), -EINVAL);
		if (!strstr(err.text, rows[i].why))
			fail_msg("'%s': %s", rows[i].text, err.text);
		assert_null(list.at);
	}
}

static void a_broken_entry_takes_no_other_with_it(void **state)
{
	struct instances list;

	assert_int_equal(instances_decode_some("[1," ENTRY ",{}," SECOND "]", &list), 0);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.at[1].container, 1);
	instances_deinit(&list);
	assert_int_equal(instances_decode_some("nonsense", &list), 0);
	assert_int_equal(list.count, 0);
	instances_deinit(&list);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_as_it_is),
		cmocka_unit_test(what_was_recorded_stays_as_it_is),
		cmocka_unit_test(what_is_none_is_refused_with_a_sentence),
		cmocka_unit_test(a_broken_entry_takes_no_other_with_it),
	};

	recordings = argv[1];
	return argc == 2 ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
