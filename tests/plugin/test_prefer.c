/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the free slices the kubelet is told to choose. */
#include "plugin/grant/prefer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/cmocka_ready.h"

#define SLICES 12 /* of each device */

static struct inventory devices;
static struct topology topology;
static char ids[8][SLICES][UUID_TEXT_BYTES];

/* Devices i and 7 - i have links to each other, and the two halves are at different sockets. */
static int setup(void **state)
{
	devices = (struct inventory){.count = 8};
	topology = (struct topology){.count = 8};
	for (unsigned i = 0; i < 8; i++) {
		snprintf(devices.device[i].uuid, UUID_TEXT_BYTES,
			"GPU-%08u-0000-0000-0000-000000000000", i);
		for (unsigned j = 0; j < 8; j++) {
			topology.pair[i][j].way =
				i / 4 == j / 4 ? TOPOLOGY_WAY_SOCKET : TOPOLOGY_WAY_SOCKETS;
			topology.pair[i][j].links = j == 7 - i ? 4 : 0;
		}
		for (unsigned k = 0; k < SLICES; k++)
			snprintf(ids[i][k], UUID_TEXT_BYTES,
				"GPU-%08u-0000-0000-0000-000000000000-%u", i, k);
	}
	return 0;
}

/* The answer as "DEVICE-SLICE DEVICE-SLICE"; free and must are of the same form. */
static const char *ask(const char *slot, const char *free, const char *must, unsigned wanted)
{
	static char text[256];
	char *list[2][64];
	const char *texts[] = {free, must}, *answer[8];
	size_t counts[2] = {0, 0};
	struct prefer_request request = {
		.devices = &devices, .topology = &topology, .wanted = wanted};
	int result;

	for (unsigned i = 0; i < 2; i++)
		for (const char *at = texts[i]; *at; at += strcspn(at, " "), at += *at == ' ') {
			unsigned device, slice;

			assert_int_equal(sscanf(at, "%u-%u", &device, &slice), 2);
			list[i][counts[i]++] = ids[device][slice];
		}
	request.free_ids = list[0];
	request.free_count = counts[0];
	request.must_ids = list[1];
	request.must_count = counts[1];
	result = slot ? prefer_reserved(slot, &request, answer) : prefer_nearest(&request, answer);
	text[0] = '\0';
	if (result) {
		assert_int_equal(result, -ENODATA);
		return "none";
	}
	for (unsigned i = 0; i < wanted; i++) {
		size_t at = (size_t)(answer[i] - ids[0][0]) / UUID_TEXT_BYTES;

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%zu-%zu",
			i ? " " : "", at / SLICES, at % SLICES);
	}
	return text;
}

#define SLOT(device) "GPU-0000000" #device "-0000-0000-0000-000000000000,NVIDIA,1000,10:"

static void a_reservation_says_the_devices(void **state)
{
	assert_string_equal(ask(SLOT(3) ";", "0-0 3-11 3-2 7-1", "", 1), "3-2");
	assert_string_equal(ask(SLOT(3) SLOT(0) ";", "0-0 3-11 7-1", "", 2), "3-11 0-0");
	assert_string_equal(ask(SLOT(3) SLOT(3) ";", "3-10 3-9 3-11", "", 2), "3-9 3-10");
	assert_string_equal(ask(SLOT(3) SLOT(0) ";", "0-0 0-5 3-1", "0-5", 2), "3-1 0-5");
	assert_string_equal(ask(SLOT(3) ";", "0-0", "", 1), "none");
	assert_string_equal(ask(SLOT(3) ";", "3-0", "0-1", 1), "none");
	assert_string_equal(ask(SLOT(3) ";", "3-0 3-1", "", 2), "none");
	assert_string_equal(ask("nonsense", "3-0 3-1", "", 1), "none");
}

static void without_one_the_nearest_devices_are_best(void **state)
{
	assert_string_equal(ask(NULL, "0-1 0-0 1-3 3-2 4-5", "", 2), "3-2 4-5");
	assert_string_equal(ask(NULL, "0-1 1-3 5-2 7-0", "", 2), "0-1 7-0");
	assert_string_equal(ask(NULL, "0-1 1-3 2-2 7-0", "1-3", 2), "1-3 0-1");
	assert_string_equal(ask(NULL, "0-1 1-3 6-2 7-0", "1-3", 2), "1-3 6-2");
	/* one alone leaves a pair to others */
	assert_string_equal(ask(NULL, "0-1 1-3 6-2", "", 1), "0-1");
	/* among equals the one with most room */
	assert_string_equal(ask(NULL, "0-1 1-3 1-4 2-0", "", 2), "1-3 0-1");
}

static void what_cannot_be_is_left_to_the_kubelet(void **state)
{
	assert_string_equal(ask(NULL, "0-1 0-2", "", 2), "none");
	assert_string_equal(ask(NULL, "0-1 0-2 1-1", "0-1 0-2", 2), "none");
	assert_string_equal(ask(NULL, "", "", 1), "none");
	assert_string_equal(ask(NULL, "0-1", "0-1 1-1", 1), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_reservation_says_the_devices, setup),
		cmocka_unit_test_setup(without_one_the_nearest_devices_are_best, setup),
		cmocka_unit_test_setup(what_cannot_be_is_left_to_the_kubelet, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
