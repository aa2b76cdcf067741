/* SPDX-License-Identifier: Apache-2.0 */
/* How the cards of a machine are joined, as NVML tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/topology.h"
#include "sim/tests/nvml/scratch.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"

#define OK(call) assert_int_equal(call, NVML_SUCCESS)

static void begin(const char *board)
{
	scratch_begin(board);
	OK(nvmlInit_v2());
}

static void end(void)
{
	OK(nvmlShutdown());
	scratch_end();
}

static nvmlDevice_t device_at(unsigned int index)
{
	nvmlDevice_t device = NULL;

	OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
	return device;
}

static unsigned int level_of(unsigned int a, unsigned int b)
{
	nvmlGpuTopologyLevel_t level, back;

	OK(nvmlDeviceGetTopologyCommonAncestor(device_at(a), device_at(b), &level));
	OK(nvmlDeviceGetTopologyCommonAncestor(device_at(b), device_at(a), &back));
	assert_int_equal(level, back);
	return level;
}

static unsigned int status_of(unsigned int a, unsigned int b, nvmlGpuP2PCapsIndex_t index)
{
	nvmlGpuP2PStatus_t status, back;

	OK(nvmlDeviceGetP2PStatus(device_at(a), device_at(b), index, &status));
	OK(nvmlDeviceGetP2PStatus(device_at(b), device_at(a), index, &back));
	assert_int_equal(status, back);
	return status;
}

/* How many links of card a end at card b; b < 0: at a switch. */
static int links_between(unsigned int a, int b)
{
	nvmlIntNvLinkDeviceType_t type;
	nvmlPciInfo_t far, peer = {0};
	int count = 0;

	if (b >= 0)
		OK(nvmlDeviceGetPciInfo_v3(device_at((unsigned int)b), &peer));
	for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
		if (nvmlDeviceGetNvLinkRemoteDeviceType(device_at(a), link, &type) !=
				NVML_SUCCESS ||
			nvmlDeviceGetNvLinkRemotePciInfo_v2(device_at(a), link, &far) !=
				NVML_SUCCESS)
			continue;
		count += b < 0 ? type == NVML_NVLINK_DEVICE_TYPE_SWITCH
			       : type == NVML_NVLINK_DEVICE_TYPE_GPU &&
					 !strcmp(far.busId, peer.busId);
	}
	return count;
}

static void the_largest_machine_has_every_distance(void **state)
{
	nvmlDevice_t nearest[16];
	unsigned int count = 16;

	begin("a100x16");
	assert_int_equal(level_of(0, 0), NVML_TOPOLOGY_INTERNAL);
	assert_int_equal(level_of(0, 1), NVML_TOPOLOGY_SINGLE);
	assert_int_equal(level_of(1, 2), NVML_TOPOLOGY_MULTIPLE);
	assert_int_equal(level_of(3, 4), NVML_TOPOLOGY_NODE);
	assert_int_equal(level_of(7, 8), NVML_TOPOLOGY_SYSTEM);
	OK(nvmlDeviceGetTopologyNearestGpus(device_at(9), NVML_TOPOLOGY_MULTIPLE, &count, nearest));
	assert_int_equal(count, 2);
	assert_ptr_equal(nearest[0], device_at(10));
	assert_int_equal(links_between(0, -1), 12);
	assert_int_equal(links_between(0, 1), 0);
	assert_int_equal(status_of(0, 15, NVML_P2P_CAPS_INDEX_NVLINK), NVML_P2P_STATUS_OK);
	end();
}

static void switches_join_all_cards_of_eight(void **state)
{
	static const char *const boards[] = {"h100x8", "h200x8"};

	for (size_t i = 0; i < 2; i++) {
		begin(boards[i]);
		assert_int_equal(level_of(0, 3), NVML_TOPOLOGY_NODE);
		assert_int_equal(level_of(3, 4), NVML_TOPOLOGY_SYSTEM);
		for (unsigned int a = 0; a < 8; a++)
			assert_int_equal(links_between(a, -1), 18);
		assert_int_equal(status_of(0, 7, NVML_P2P_CAPS_INDEX_READ), NVML_P2P_STATUS_OK);
		assert_int_equal(
			status_of(0, 7, NVML_P2P_CAPS_INDEX_PCI), NVML_P2P_STATUS_NOT_SUPPORTED);
		assert_int_equal(
			status_of(2, 2, NVML_P2P_CAPS_INDEX_READ), NVML_P2P_STATUS_NOT_SUPPORTED);
		end();
	}
}

static void a_bridge_joins_each_of_four_to_each(void **state)
{
	nvmlEnableState_t is_active;

	begin("h200nvlx4");
	for (unsigned int a = 0; a < 4; a++)
		for (int b = -1; b < 4; b++)
			assert_int_equal(links_between(a, b), b < 0 || b == (int)a ? 0 : 6);
	OK(nvmlDeviceGetNvLinkState(device_at(3), 17, &is_active));
	assert_int_equal(is_active, NVML_FEATURE_ENABLED);
	assert_int_equal(status_of(0, 3, NVML_P2P_CAPS_INDEX_ATOMICS), NVML_P2P_STATUS_OK);
	end();
}

static void cards_without_links_reach_those_of_their_socket(void **state)
{
	nvmlEnableState_t is_active;

	begin("l4x4");
	assert_int_equal(level_of(0, 1), NVML_TOPOLOGY_SINGLE);
	assert_int_equal(level_of(1, 2), NVML_TOPOLOGY_SYSTEM);
	assert_int_equal(
		nvmlDeviceGetNvLinkState(device_at(0), 0, &is_active), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(status_of(0, 1, NVML_P2P_CAPS_INDEX_READ), NVML_P2P_STATUS_OK);
	assert_int_equal(status_of(0, 1, NVML_P2P_CAPS_INDEX_PCI), NVML_P2P_STATUS_OK);
	assert_int_equal(
		status_of(0, 1, NVML_P2P_CAPS_INDEX_NVLINK), NVML_P2P_STATUS_NOT_SUPPORTED);
	assert_int_equal(
		status_of(1, 2, NVML_P2P_CAPS_INDEX_WRITE), NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
	end();
}

static void every_card_of_every_machine_is_told_apart(void **state)
{
	static const char *const boards[] = {"h200x2", "h200nvlx4", "h100x8", "a100x16"};
	static const unsigned int counts[] = {2, 4, 8, 16};
	nvmlDevice_t again;
	nvmlPciInfo_t pci;
	unsigned int count, number;
	unsigned long nodes;

	for (size_t i = 0; i < 4; i++) {
		begin(boards[i]);
		OK(nvmlDeviceGetCount_v2(&count));
		assert_int_equal(count, counts[i]);
		for (unsigned int card = 0; card < count; card++) {
			OK(nvmlDeviceGetPciInfo_v3(device_at(card), &pci));
			OK(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &again));
			assert_ptr_equal(again, device_at(card));
			OK(nvmlDeviceGetCurrPcieLinkGeneration(device_at(card), &number));
			assert_in_range(number, 4, 5);
			OK(nvmlDeviceGetMaxPcieLinkWidth(device_at(card), &number));
			assert_int_equal(number, 16);
			OK(nvmlDeviceGetMemoryAffinity(
				device_at(card), 1, &nodes, NVML_AFFINITY_SCOPE_NODE));
			assert_int_equal(nodes, count > 2 && card >= count / 2 ? 2 : 1);
		}
		end();
	}
}

/* A mesh of which cards are missing has links that go nowhere. */
static void links_to_a_missing_card_are_inactive(void **state)
{
	struct board board;
	char text[64];

	assert_int_equal(board_parse("pair", "base = h200nvlx4\ndevice_count = 3\n", &board, text,
				 sizeof(text)),
		0);
	assert_int_equal(topology_link_end(&board, 2, 0), 0);
	assert_int_equal(topology_link_end(&board, 2, 11), 1);
	assert_int_equal(topology_link_end(&board, 2, 12), TOPOLOGY_UNUSED);
	assert_true(topology_has_nvlink(&board, 0, 2));
	assert_false(topology_has_peer(&board, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_machine_has_every_distance),
		cmocka_unit_test(switches_join_all_cards_of_eight),
		cmocka_unit_test(a_bridge_joins_each_of_four_to_each),
		cmocka_unit_test(cards_without_links_reach_those_of_their_socket),
		cmocka_unit_test(every_card_of_every_machine_is_told_apart),
		cmocka_unit_test(links_to_a_missing_card_are_inactive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
