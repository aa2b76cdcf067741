/* SPDX-License-Identifier: Apache-2.0 */
/* How a node's devices are joined, read from NVML on the boards of the simulated node. */
#include "gpu/topology.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/tests/nvml/scratch.h"
#include "tests/unit/cmocka_ready.h"

static struct nvml_driver nvml;
static struct nvml_node node;
static struct inventory devices;
static struct topology joined;

static void read_machine(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	struct err err = ERR_NULL;

	assert_non_null(library);
	driver_load_nvml(library, dlsym, &nvml);
	driver_load_nvml_node(library, dlsym, &node);
	assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
	assert_int_equal(inventory_read(&nvml, &devices, &err), 0);
	topology_read(&nvml, &node, &devices, &joined);
}

static void read_board(const char *board)
{
	scratch_begin(board);
	read_machine();
}

static void end(void)
{
	assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
	scratch_end();
}

static void boards_have_the_scores_of_their_data_sheets(void **state)
{
	static const struct {
		const char *board;
		unsigned count, near, near_score, far, far_score;
	} rows[] = {
		{"h200x2", 2, 1, 1830, 1, 1830},
		{"h200nvlx4", 4, 1, 620, 3, 610},
		{"h100x8", 8, 3, 1820, 7, 1810},
		{"h200x8", 8, 3, 1820, 4, 1810},
		{"a100x16", 16, 1, 1250, 2, 1240},
		{"a100x16", 16, 4, 1220, 15, 1210},
		{"l4x4", 4, 1, 50, 2, 10},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		read_board(rows[i].board);
		assert_int_equal(joined.count, rows[i].count);
		assert_int_equal(topology_score(&joined, 0, rows[i].near), rows[i].near_score);
		assert_int_equal(topology_score(&joined, rows[i].near, 0), rows[i].near_score);
		assert_int_equal(topology_score(&joined, 0, rows[i].far), rows[i].far_score);
		end();
	}
}

/* The kernel counts devices as it finds them, NVML by their place on the bus. */
static void a_devices_file_has_the_kernels_number(void **state)
{
	FILE *file;

	scratch_begin("h200x2");
	file = fopen(scratch_path("late.board"), "we");
	assert_non_null(file);
	fputs("base = h200x2\ndevice_count = 3\nminor_first = 1\n", file);
	fclose(file);
	setenv("VGPU_SIM_BOARD", scratch_path("late.board"), 1);
	read_machine();
	assert_int_equal(devices.count, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(devices.device[i].index, i);
		assert_int_equal(devices.device[i].minor, (i + 1) % 3);
	}
	end();
}

static void one_card_is_joined_to_none(void **state)
{
	read_board("h200");
	assert_int_equal(joined.count, 1);
	assert_int_equal(joined.switch_links[0], 0);
	end();
}

static void devices_are_where_the_board_says(void **state)
{
	struct device_place place;

	read_board("h100x8");
	for (unsigned i = 0; i < devices.count; i++) {
		topology_read_place(&nvml, &node, &devices.device[i], &place);
		assert_int_equal(place.numa_node, i / 4);
		assert_memory_equal(place.bus_id, "00000000:", 9);
	}
	assert_string_equal(place.bus_id, "00000000:D1:00.0");
	end();
}

/* A driver of which nothing is known but the devices: they are where nobody knows, and not near each other. */
static void without_the_functions_nothing_is_known(void **state)
{
	static const struct nvml_node nothing;
	struct device_place place;

	read_board("l4x4");
	topology_read(&nvml, &nothing, &devices, &joined);
	topology_read_place(&nvml, &nothing, &devices.device[1], &place);
	assert_int_equal(joined.count, 4);
	assert_int_equal(topology_score(&joined, 0, 1), 0);
	assert_int_equal(place.numa_node, -1);
	assert_string_equal(place.bus_id, "");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boards_have_the_scores_of_their_data_sheets),
		cmocka_unit_test(a_devices_file_has_the_kernels_number),
		cmocka_unit_test(one_card_is_joined_to_none),
		cmocka_unit_test(devices_are_where_the_board_says),
		cmocka_unit_test(without_the_functions_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
