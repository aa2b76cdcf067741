/* SPDX-License-Identifier: Apache-2.0 */
/* The annotation by which the scheduler knows how near a node's devices are, as others' plugins write it. */
#include "plugin/devices/score.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/cmocka_ready.h"

static void make(unsigned count, struct inventory *ret_devices, struct topology *ret_topology)
{
	*ret_devices = (struct inventory){.count = count};
	*ret_topology = (struct topology){.count = count};
	for (unsigned i = 0; i < count; i++) {
		snprintf(ret_devices->device[i].uuid, UUID_TEXT_BYTES, "GPU-%u", i);
		ret_topology->switch_links[i] = 18;
		for (unsigned j = 0; j < count; j++)
			ret_topology->pair[i][j].way = TOPOLOGY_WAY_BRIDGE;
	}
}

static void expect(unsigned count, const char *text)
{
	static struct topology topology;
	static struct inventory devices;
	char *written;

	make(count, &devices, &topology);
	assert_int_equal(score_format(&devices, &topology, &written), 0);
	assert_string_equal(written, text);
	free(written);
}

static void scores_are_written_as_the_scheduler_reads_them(void **state)
{
	expect(2, "[{\"uuid\":\"GPU-0\",\"score\":{\"GPU-1\":1830}},"
		  "{\"uuid\":\"GPU-1\",\"score\":{\"GPU-0\":1830}}]");
	expect(1, "[{\"uuid\":\"GPU-0\",\"score\":{}}]");
	expect(0, "[]");
}

/* The order is that of the devices, whatever their number: the same node makes the same text. */
static void sixteen_devices_are_in_their_order(void **state)
{
	static struct topology topology;
	static struct inventory devices;
	char *written, *again;
	json_t *list;

	make(16, &devices, &topology);
	assert_int_equal(score_format(&devices, &topology, &written), 0);
	assert_int_equal(score_format(&devices, &topology, &again), 0);
	assert_string_equal(written, again);
	list = json_loads(written, 0, NULL);
	assert_int_equal(json_array_size(list), 16);
	for (size_t i = 0; i < 16; i++) {
		json_t *row = json_array_get(list, i);

		assert_string_equal(
			json_string_value(json_object_get(row, "uuid")), devices.device[i].uuid);
		assert_int_equal(json_object_size(json_object_get(row, "score")), 15);
	}
	json_decref(list);
	free(written);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scores_are_written_as_the_scheduler_reads_them),
		cmocka_unit_test(sixteen_devices_are_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
