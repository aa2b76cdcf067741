/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices reach each other's memory; NVML says the same (sim/tests/nvml/test_topology.c). */
#include "sim/tests/cuda/child.h"

#include <stdlib.h>

static void begin(const char *board)
{
	setenv("VGPU_SIM_BOARD", board, 1);
	OK(cuInit(0));
}

static int attribute(CUdevice_P2PAttribute attribute, CUdevice a, CUdevice b)
{
	int value = -1, back = -1;

	OK(cuDeviceGetP2PAttribute(&value, attribute, a, b));
	OK(cuDeviceGetP2PAttribute(&back, attribute, b, a));
	EQUAL(value, back);
	return value;
}

static int can_access(CUdevice a, CUdevice b)
{
	int value = -1;

	OK(cuDeviceCanAccessPeer(&value, a, b));
	if (a != b)
		EQUAL(value, attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, a, b));
	return value;
}

static CUcontext context_of(CUdevice device)
{
	CUcontext context;

	OK(cuDevicePrimaryCtxRetain(&context, device));
	return context;
}

TEST(links_let_all_cards_reach_each_other)
{
	begin("a100x16");
	EQUAL(can_access(0, 0), 0);
	EQUAL(can_access(0, 15), 1);
	EQUAL(attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 15), 1);
	OK(cuCtxSetCurrent(context_of(0)));
	OK(cuCtxEnablePeerAccess(context_of(15), 0));
}

TEST(without_links_cards_of_one_socket_reach_each_other)
{
	begin("l4x4");
	EQUAL(can_access(0, 1), 1);
	EQUAL(attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1), 0);
	EQUAL(can_access(1, 2), 0);
	OK(cuCtxSetCurrent(context_of(1)));
	OK(cuCtxEnablePeerAccess(context_of(0), 0));
	EQUAL(cuCtxEnablePeerAccess(context_of(2), 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

/* Where the program counts otherwise than the machine, the cards are the same. */
TEST(devices_are_told_by_the_card_and_not_by_the_number)
{
	setenv("CUDA_VISIBLE_DEVICES", "3,1,2", 1);
	begin("l4x4");
	EQUAL(can_access(0, 1), 0);
	EQUAL(can_access(0, 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_let_all_cards_reach_each_other),
		cmocka_unit_test(without_links_cards_of_one_socket_reach_each_other),
		cmocka_unit_test(devices_are_told_by_the_card_and_not_by_the_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
