/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: cards that are cut into instances, as NVML shows and makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/mig.h"
#include "sim/tests/nvml/scratch.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"

#define OK(call)	  assert_int_equal(call, NVML_SUCCESS)
#define FAILS(call, what) assert_int_equal(call, NVML_ERROR_##what)

static nvmlDevice_t card;

static void begin_on(const char *board)
{
	scratch_begin(board);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetHandleByIndex_v2(0, &card));
}

static int begin(void **state)
{
	nvmlReturn_t activation;

	begin_on("h200x2");
	OK(nvmlDeviceSetMigMode(card, NVML_DEVICE_MIG_ENABLE, &activation));
	OK(activation);
	return 0;
}

static int end(void **state)
{
	OK(nvmlShutdown());
	scratch_end();
	return 0;
}

/* Of each family: profiles by kind, with their ids, sizes, numbers, and places. */
static const struct {
	const char *board;
	unsigned int kind, id, slices, instances, sm, mib, places, size;
	const char *name;
} profiles[] = {
	{"a100-40", NVML_GPU_INSTANCE_PROFILE_1_SLICE, 19, 1, 7, 14, 4864, 7, 1, "MIG 1g.5gb"},
	{"a100-40", NVML_GPU_INSTANCE_PROFILE_2_SLICE, 14, 2, 3, 28, 9984, 3, 2, "MIG 2g.10gb"},
	{"a100-40", NVML_GPU_INSTANCE_PROFILE_7_SLICE, 0, 7, 1, 98, 40448, 1, 8, "MIG 7g.40gb"},
	{"a100-80", NVML_GPU_INSTANCE_PROFILE_3_SLICE, 9, 3, 2, 42, 40192, 2, 4, "MIG 3g.40gb"},
	{"h100", NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1, 20, 1, 1, 16, 9856, 7, 1,
		"MIG 1g.10gb+me"},
	{"h100", NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, 15, 1, 4, 26, 20096, 4, 2, "MIG 1g.20gb"},
	{"h100", NVML_GPU_INSTANCE_PROFILE_4_SLICE, 5, 4, 1, 64, 40448, 1, 4, "MIG 4g.40gb"},
	{"h200", NVML_GPU_INSTANCE_PROFILE_3_SLICE, 9, 3, 2, 60, 71168, 2, 4, "MIG 3g.71gb"},
};

static void profiles_are_those_of_the_card(void **state)
{
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		nvmlGpuInstanceProfileInfo_v2_t named = {.version = nvmlGpuInstanceProfileInfo_v2};
		nvmlGpuInstancePlacement_t placements[8];
		nvmlGpuInstanceProfileInfo_t info;
		unsigned int count = 8;

		begin_on(profiles[i].board);
		OK(nvmlDeviceGetGpuInstanceProfileInfo(card, profiles[i].kind, &info));
		assert_int_equal(info.id, profiles[i].id);
		assert_int_equal(info.sliceCount, profiles[i].slices);
		assert_int_equal(info.instanceCount, profiles[i].instances);
		assert_int_equal(info.multiprocessorCount, profiles[i].sm);
		assert_int_equal(info.memorySizeMB, profiles[i].mib);
		OK(nvmlDeviceGetGpuInstanceProfileInfoV(card, profiles[i].kind, &named));
		assert_string_equal(named.name, profiles[i].name);
		OK(nvmlDeviceGetGpuInstancePossiblePlacements_v2(
			card, info.id, placements, &count));
		assert_int_equal(count, profiles[i].places);
		assert_int_equal(placements[count - 1].size, profiles[i].size);
		end(NULL);
	}
}

static void a_card_without_mig_has_none(void **state)
{
	nvmlGpuInstanceProfileInfo_t info;
	nvmlReturn_t activation;
	unsigned int mode;

	begin_on("t4");
	FAILS(nvmlDeviceGetMigMode(card, &mode, &mode), NOT_SUPPORTED);
	FAILS(nvmlDeviceSetMigMode(card, 1, &activation), NOT_SUPPORTED);
	FAILS(nvmlDeviceGetGpuInstanceProfileInfo(card, 0, &info), NOT_SUPPORTED);
	OK(nvmlDeviceGetMaxMigDeviceCount(card, &mode));
	assert_int_equal(mode, 0);
	end(NULL);
}

static nvmlGpuInstance_t make_at(unsigned int profile, unsigned int start, unsigned int size)
{
	const nvmlGpuInstancePlacement_t placement = {start, size};
	nvmlGpuInstance_t instance = NULL;

	OK(nvmlDeviceCreateGpuInstanceWithPlacement(card, profile, &placement, &instance));
	return instance;
}

static nvmlComputeInstance_t fill(nvmlGpuInstance_t instance, unsigned int profile)
{
	nvmlComputeInstance_t compute = NULL;

	OK(nvmlGpuInstanceCreateComputeInstance(instance, profile, &compute));
	return compute;
}

static void instances_are_made_where_there_is_room(void **state)
{
	nvmlGpuInstance_t first = make_at(19, 6, 1), other, list[7];
	const nvmlGpuInstancePlacement_t same = {6, 1}, wrong = {1, 2};
	nvmlGpuInstanceInfo_t info;
	unsigned int count;

	OK(nvmlGpuInstanceGetInfo(first, &info));
	assert_int_equal(info.id, 9);
	assert_int_equal(info.placement.start, 6);
	assert_ptr_equal(info.device, card);
	FAILS(nvmlDeviceCreateGpuInstanceWithPlacement(card, 19, &same, &other),
		INSUFFICIENT_RESOURCES);
	FAILS(nvmlDeviceCreateGpuInstanceWithPlacement(card, 14, &wrong, &other), INVALID_ARGUMENT);
	FAILS(nvmlDeviceCreateGpuInstance(card, 0, &other), INSUFFICIENT_RESOURCES);
	OK(nvmlDeviceGetGpuInstanceRemainingCapacity(card, 9, &count));
	assert_int_equal(count, 1);
	OK(nvmlDeviceGetGpuInstanceRemainingCapacity(card, 19, &count));
	assert_int_equal(count, 6);
	OK(nvmlDeviceCreateGpuInstance(card, 9, &other));
	OK(nvmlDeviceGetGpuInstanceRemainingCapacity(card, 14, &count));
	assert_int_equal(count, 1);
	OK(nvmlDeviceGetGpuInstances(card, 19, list, &count));
	assert_int_equal(count, 1);
	assert_ptr_equal(list[0], first);
	OK(nvmlDeviceGetGpuInstanceById(card, 2, &list[1]));
	assert_ptr_equal(list[1], other);
	OK(nvmlGpuInstanceDestroy(other));
	FAILS(nvmlGpuInstanceDestroy(other), INVALID_ARGUMENT);
	FAILS(nvmlDeviceGetGpuInstanceById(card, 2, &other), NOT_FOUND);
	OK(nvmlGpuInstanceDestroy(first));
}

static void processors_have_seven_slices_and_media_engines_are_once(void **state)
{
	nvmlGpuInstance_t instance;
	unsigned int count;

	for (int i = 0; i < 4; i++)
		OK(nvmlDeviceCreateGpuInstance(card, 15, &instance));
	OK(nvmlDeviceGetGpuInstanceRemainingCapacity(card, 19, &count));
	assert_int_equal(count, 0);
	OK(nvmlGpuInstanceDestroy(instance));
	OK(nvmlDeviceCreateGpuInstance(card, 20, &instance));
	OK(nvmlDeviceGetGpuInstanceRemainingCapacity(card, 20, &count));
	assert_int_equal(count, 0);
	FAILS(nvmlDeviceCreateGpuInstance(card, 20, &instance), INSUFFICIENT_RESOURCES);
}

static void a_part_is_a_device_by_itself(void **state)
{
	char name[96], uuid[80];
	nvmlDeviceAttributes_t attributes;
	nvmlDevice_t device, again, parent;
	nvmlMemory_t memory;
	unsigned int number;

	fill(make_at(19, 0, 1), 0);
	fill(make_at(9, 4, 4), NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE);
	FAILS(nvmlDeviceGetMigDeviceHandleByIndex(card, 2, &device), NOT_FOUND);
	OK(nvmlDeviceGetMigDeviceHandleByIndex(card, 1, &device));
	OK(nvmlDeviceIsMigDeviceHandle(device, &number));
	assert_int_equal(number, 1);
	OK(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)));
	assert_memory_equal(uuid, "MIG-", 4);
	OK(nvmlDeviceGetHandleByUUID(uuid, &again));
	assert_ptr_equal(again, device);
	OK(nvmlDeviceGetName(device, name, sizeof(name)));
	assert_string_equal(name, "NVIDIA H200 MIG 3g.71gb");
	OK(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device, &parent));
	assert_ptr_equal(parent, card);
	OK(nvmlDeviceGetGpuInstanceId(device, &number));
	assert_int_equal(number, 1);
	OK(nvmlDeviceGetComputeInstanceId(device, &number));
	assert_int_equal(number, 0);
	OK(nvmlDeviceGetIndex(device, &number));
	assert_int_equal(number, 1);
	OK(nvmlDeviceGetAttributes_v2(device, &attributes));
	assert_int_equal(attributes.multiprocessorCount, 60);
	assert_int_equal(attributes.memorySizeMB, 71168);
	OK(nvmlDeviceGetMemoryInfo(device, &memory));
	assert_true(memory.total == 71168ull << 20 && memory.free == memory.total);
	FAILS(nvmlDeviceGetMinorNumber(device, &number), NOT_SUPPORTED);
	FAILS(nvmlDeviceGetGpuInstanceId(card, &number), INVALID_ARGUMENT);
}

static void an_instance_is_cut_into_compute_instances(void **state)
{
	nvmlComputeInstanceProfileInfo_t profile;
	nvmlGpuInstance_t instance = make_at(9, 0, 4);
	nvmlComputeInstance_t two, one, found;
	nvmlComputeInstanceInfo_t info;
	nvmlDevice_t device;
	unsigned int count;
	char name[96];

	OK(nvmlGpuInstanceGetComputeInstanceProfileInfo(
		instance, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE, 0, &profile));
	assert_int_equal(profile.instanceCount, 3);
	assert_int_equal(profile.multiprocessorCount, 20);
	FAILS(nvmlGpuInstanceGetComputeInstanceProfileInfo(
		      instance, NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE, 0, &profile),
		NOT_SUPPORTED);
	two = fill(instance, NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE);
	OK(nvmlGpuInstanceGetComputeInstanceRemainingCapacity(instance, 0, &count));
	assert_int_equal(count, 1);
	one = fill(instance, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
	FAILS(nvmlGpuInstanceCreateComputeInstance(instance, 0, &found), INSUFFICIENT_RESOURCES);
	OK(nvmlComputeInstanceGetInfo_v2(one, &info));
	assert_int_equal(info.placement.start, 2);
	assert_int_equal(info.profileId, 0);
	OK(nvmlGpuInstanceGetComputeInstanceById(instance, info.id, &found));
	assert_ptr_equal(found, one);
	OK(nvmlDeviceGetMigDeviceHandleByIndex(card, 1, &device));
	OK(nvmlDeviceGetName(device, name, sizeof(name)));
	assert_string_equal(name, "NVIDIA H200 MIG 1c.3g.71gb");
	FAILS(nvmlGpuInstanceDestroy(instance), IN_USE);
	OK(nvmlComputeInstanceDestroy(two));
	FAILS(nvmlComputeInstanceDestroy(two), INVALID_ARGUMENT);
	OK(nvmlComputeInstanceDestroy(one));
	FAILS(nvmlDeviceGetUUID(device, name, sizeof(name)), NOT_FOUND);
	OK(nvmlGpuInstanceDestroy(instance));
}

/* A process that uses a part; it ends when the pipe does. */
static pid_t use_part(unsigned int id, int *ret_fd)
{
	struct machine *machine;
	int ready[2], end_pipe[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready) | pipe(end_pipe), 0);
	pid = fork();
	if (pid == 0) {
		close(end_pipe[1]);
		if (machine_open(NULL, NULL, &machine, NULL, 0) || machine_join(machine))
			_exit(1);
		mig_use(machine, 0, id, 0);
		machine_set_contexts(machine, 0, 1);
		if (machine_grow(machine, 0, MACHINE_PLAIN, 64 << 20))
			_exit(1);
		if (write(ready[1], "x", 1) != 1 || read(end_pipe[0], &byte, 1))
			_exit(1);
		_exit(0);
	}
	close(end_pipe[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*ret_fd = end_pipe[1];
	return pid;
}

static void what_is_in_use_is_not_destroyed(void **state)
{
	nvmlGpuInstance_t used = make_at(14, 0, 2), unused = make_at(14, 2, 2);
	nvmlComputeInstance_t compute = fill(used, 1), other = fill(unused, 1);
	nvmlProcessInfo_t infos[4];
	nvmlDevice_t device;
	nvmlMemory_t memory;
	nvmlReturn_t activation;
	unsigned int count = 4, pending;
	int fd, status;
	pid_t pid = use_part(5, &fd);

	FAILS(nvmlComputeInstanceDestroy(compute), IN_USE);
	FAILS(nvmlGpuInstanceDestroy(used), IN_USE);
	OK(nvmlComputeInstanceDestroy(other));
	OK(nvmlGpuInstanceDestroy(unused));
	OK(nvmlDeviceGetMigDeviceHandleByIndex(card, 0, &device));
	OK(nvmlDeviceGetMemoryInfo(device, &memory));
	assert_true(memory.used == 64 << 20);
	OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos));
	assert_int_equal(count, 1);
	assert_int_equal(infos[0].pid, pid);
	assert_int_equal(infos[0].gpuInstanceId, 5);
	OK(nvmlDeviceSetMigMode(card, NVML_DEVICE_MIG_DISABLE, &activation));
	FAILS(activation, IN_USE);
	OK(nvmlDeviceGetMigMode(card, &count, &pending));
	assert_int_equal(count, 1);
	assert_int_equal(pending, 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(nvmlComputeInstanceDestroy(compute));
	OK(nvmlGpuInstanceDestroy(used));
	OK(nvmlDeviceSetMigMode(card, NVML_DEVICE_MIG_DISABLE, &activation));
	OK(activation);
	FAILS(nvmlDeviceCreateGpuInstance(card, 14, &used), NOT_SUPPORTED);
}

/* In a container: the parts that it was given, and their card. */
static void a_container_sees_its_parts_alone(void **state)
{
	char uuid[80], same[80];
	nvmlDevice_t device;
	unsigned int count;

	fill(make_at(19, 0, 1), 0);
	fill(make_at(19, 1, 1), 0);
	OK(nvmlDeviceGetMigDeviceHandleByIndex(card, 1, &device));
	OK(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)));
	OK(nvmlShutdown());
	setenv("NVIDIA_VISIBLE_DEVICES", uuid, 1);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	assert_int_equal(count, 1);
	OK(nvmlDeviceGetHandleByIndex_v2(0, &card));
	OK(nvmlDeviceGetMigDeviceHandleByIndex(card, 0, &device));
	OK(nvmlDeviceGetUUID(device, same, sizeof(same)));
	assert_string_equal(same, uuid);
	FAILS(nvmlDeviceGetMigDeviceHandleByIndex(card, 1, &device), NOT_FOUND);
	unsetenv("NVIDIA_VISIBLE_DEVICES");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_are_those_of_the_card),
		cmocka_unit_test(a_card_without_mig_has_none),
		TEST(instances_are_made_where_there_is_room),
		TEST(processors_have_seven_slices_and_media_engines_are_once),
		TEST(a_part_is_a_device_by_itself),
		TEST(an_instance_is_cut_into_compute_instances),
		TEST(what_is_in_use_is_not_destroyed),
		TEST(a_container_sees_its_parts_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
