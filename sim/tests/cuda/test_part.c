/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a card as the one device of a program (MIG). */
#include "sim/tests/cuda/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/mig.h"

/* Two instances of card 0: 1g at slice 0, 3g in the upper half. Their UUIDs. */
static char small[MACHINE_UUID_SIZE], large[MACHINE_UUID_SIZE];

static unsigned int make(unsigned int profile, unsigned int slices, int start, char *ret_uuid)
{
	struct machine *machine = child_machine();
	const struct board *board = machine_board(machine);
	unsigned int id, compute;

	EQUAL(mig_create(machine, 0, mig_profile_of_id(board, profile), start, &id), 0);
	EQUAL(mig_create_compute(machine, 0, id, slices, -1, &compute), 0);
	mig_uuid_text(board, 0, id, compute, ret_uuid);
	return id;
}

static void begin(void)
{
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	EQUAL(mig_set_mode(child_machine(), 0, true), 0);
	make(19, 1, 0, small);
	make(9, 3, 4, large);
}

static int multiprocessors(void)
{
	int value;

	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	return value;
}

TEST(a_part_is_the_only_device_and_as_large_as_its_instance)
{
	size_t free_bytes, total_bytes;
	char name[96];
	int count;

	begin();
	setenv("CUDA_VISIBLE_DEVICES", large, 1);
	child_context();
	OK(cuDeviceGetCount(&count));
	EQUAL(count, 1);
	EQUAL(multiprocessors(), 60);
	OK(cuDeviceTotalMem_v2(&total_bytes, 0));
	EQUAL(total_bytes, 71168 * MiB);
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	EQUAL(total_bytes, 71168 * MiB);
	CHECK(free_bytes < total_bytes && free_bytes > total_bytes - 1024 * MiB);
	OK(cuDeviceGetName(name, sizeof(name), 0));
	CHECK(!strcmp(name, "NVIDIA H200 MIG 3g.71gb"));
}

TEST(a_part_has_a_uuid_of_its_own_beside_its_cards)
{
	CUuuid own, of_card;
	char text[MACHINE_UUID_SIZE];

	begin();
	setenv("CUDA_VISIBLE_DEVICES", small, 1);
	OK(cuInit(0));
	OK(cuDeviceGetUuid_v2(&own, 0));
	OK(cuDeviceGetUuid(&of_card, 0));
	machine_uuid_text((uint8_t *)own.bytes, text);
	CHECK(!strcmp(text + 4, small + 4));
	CHECK(memcmp(&own, &of_card, sizeof(own)) != 0);
}

/* Without a name the first part is taken, and no whole card beside it. */
TEST(the_first_part_is_taken_before_whole_cards)
{
	int count;

	begin();
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	EQUAL(count, 1);
	EQUAL(multiprocessors(), 16);
}

TEST(a_card_in_mig_mode_is_no_device_itself)
{
	int count;

	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	EQUAL(mig_set_mode(child_machine(), 0, true), 0);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	EQUAL(count, 1);
	EQUAL(multiprocessors(), 132);
}

TEST(a_part_that_is_not_there_is_no_device)
{
	begin();
	small[10] = small[10] == '0' ? '1' : '0';
	setenv("CUDA_VISIBLE_DEVICES", small, 1);
	EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void fill_the_large_one(void)
{
	CUdeviceptr p;

	setenv("CUDA_VISIBLE_DEVICES", large, 1);
	child_context();
	OK(cuMemAlloc_v2(&p, 60000 * MiB));
	EQUAL(cuMemAlloc_v2(&p, 12000 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(instances_have_their_memory_apart)
{
	size_t before, after, total_bytes;
	CUdeviceptr p;

	begin();
	setenv("CUDA_VISIBLE_DEVICES", small, 1);
	child_wait(child_start(fill_the_large_one), 0);
	child_context();
	OK(cuMemGetInfo_v2(&before, &total_bytes));
	EQUAL(total_bytes, 16384 * MiB);
	EQUAL(cuMemAlloc_v2(&p, 16384 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&p, 8192 * MiB));
	OK(cuMemGetInfo_v2(&after, &total_bytes));
	EQUAL(before - after, 8192 * MiB);
}

#define MS UINT64_C(1000000)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 duration_ns)\n{ ret; }\n";

static void spin(uint64_t duration_ns)
{
	void *params[] = {&duration_ns};
	CUfunction function;
	CUmodule module;

	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&function, module, "spin"));
	OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
}

/* In milliseconds, by its events; work before it, so that the host's time does not come between. */
static float time_of(uint64_t duration_ns)
{
	CUevent start, end;
	float ms;

	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	spin(20 * MS);
	OK(cuEventRecord(start, NULL));
	spin(duration_ns);
	OK(cuEventRecord(end, NULL));
	OK(cuEventSynchronize(end));
	OK(cuEventElapsedTime(&ms, start, end));
	return ms;
}

static int ready_fds[2];

static void keep_the_large_one_busy(void)
{
	setenv("CUDA_VISIBLE_DEVICES", large, 1);
	child_context();
	spin(100000 * MS);
	CHECK(write(ready_fds[1], "x", 1) == 1);
	pause();
}

static void time_on_the_small_one(void)
{
	setenv("CUDA_VISIBLE_DEVICES", small, 1);
	child_context();
	IN_TIME(time_of(100 * MS) < 102);
}

static void time_on_the_large_one(void)
{
	setenv("CUDA_VISIBLE_DEVICES", large, 1);
	child_context();
	CHECK(time_of(100 * MS) > 150);
}

/* Beside work on another instance a program loses nothing, on the same one it takes turns. */
TEST(instances_have_their_time_apart)
{
	char byte;
	int pid;

	begin();
	CHECK(pipe(ready_fds) == 0);
	pid = child_start(keep_the_large_one_busy);
	CHECK(read(ready_fds[0], &byte, 1) == 1);
	child_wait(child_start(time_on_the_small_one), 0);
	child_wait(child_start(time_on_the_large_one), 0);
	kill(pid, SIGKILL);
	child_wait(pid, SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_the_only_device_and_as_large_as_its_instance),
		cmocka_unit_test(a_part_has_a_uuid_of_its_own_beside_its_cards),
		cmocka_unit_test(the_first_part_is_taken_before_whole_cards),
		cmocka_unit_test(a_card_in_mig_mode_is_no_device_itself),
		cmocka_unit_test(a_part_that_is_not_there_is_no_device),
		cmocka_unit_test(instances_have_their_memory_apart),
		cmocka_unit_test(instances_have_their_time_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
