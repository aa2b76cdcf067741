/* SPDX-License-Identifier: Apache-2.0 */
/* A card that falls off the bus under a program, and a driver that goes. */
#include "sim/tests/cuda/child.h"

#include <stdlib.h>

#include "sim/machine/presence.h"

TEST(what_a_program_had_on_a_lost_card_is_gone_for_good)
{
	CUdeviceptr p;
	int count;

	child_context();
	OK(cuMemAlloc_v2(&p, MiB));
	EQUAL(presence_lose(child_machine(), 0), 0);
	EQUAL(cuMemAlloc_v2(&p, MiB), CUDA_ERROR_UNKNOWN);
	EQUAL(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
	EQUAL(cuMemFree_v2(p), CUDA_ERROR_UNKNOWN);
	EQUAL(presence_return(child_machine(), 0), 0);
	EQUAL(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
	EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_UNKNOWN);
}

TEST(a_program_without_a_context_there_goes_on)
{
	CUcontext context;
	CUdeviceptr p;

	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	child_context();
	EQUAL(presence_lose(child_machine(), 1), 0);
	OK(cuMemAlloc_v2(&p, MiB));
	EQUAL(cuDevicePrimaryCtxRetain(&context, 1), CUDA_ERROR_UNKNOWN);
	EQUAL(presence_return(child_machine(), 1), 0);
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuMemFree_v2(p));
	EQUAL(presence_lose(child_machine(), 1), 0);
	EQUAL(cuMemAlloc_v2(&p, MiB), CUDA_ERROR_UNKNOWN);
}

TEST(a_lost_card_is_not_counted_by_who_begins_then)
{
	char name[64];
	int count;

	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	EQUAL(presence_lose(child_machine(), 0), 0);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	EQUAL(count, 1);
	OK(cuDeviceGetPCIBusId(name, sizeof(name), 0));
	CHECK(name[9] == '7');
}

static void use_the_card(void)
{
	CUdeviceptr p;

	child_context();
	OK(cuMemAlloc_v2(&p, MiB));
	OK(cuCtxSynchronize());
}

TEST(without_the_driver_there_is_no_device_and_with_it_there_are_again)
{
	CUcontext context;

	EQUAL(presence_lose(child_machine(), 0), 0);
	EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
	EQUAL(presence_return(child_machine(), 0), 0);
	presence_stop(child_machine());
	EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
	presence_start(child_machine());
	child_wait(child_start(use_the_card), 0);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	presence_stop(child_machine());
	presence_start(child_machine());
	EQUAL(cuCtxSetCurrent(context), CUDA_ERROR_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_program_had_on_a_lost_card_is_gone_for_good),
		cmocka_unit_test(a_program_without_a_context_there_goes_on),
		cmocka_unit_test(a_lost_card_is_not_counted_by_who_begins_then),
		cmocka_unit_test(without_the_driver_there_is_no_device_and_with_it_there_are_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
