/* SPDX-License-Identifier: Apache-2.0 */
/* A region's devices: one place for each, for all processes, taken without waiting for anybody. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "region/region.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define CREATORS 16

static void a_device_has_one_entry_for_all(void **state)
{
	struct scratch *s = *state;
	struct region one = REGION_NULL, two = REGION_NULL;
	unsigned first, second, again;

	assert_int_equal(region_open(s->file, &one), 0);
	assert_int_equal(region_open(s->file, &two), 0);
	assert_int_equal(region_device(&one, "GPU-a", &first), 0);
	assert_int_equal(region_device(&two, "GPU-b", &second), 0);
	assert_int_equal(first, 0);
	assert_int_equal(second, 1);
	assert_int_equal(region_device(&two, "GPU-a", &again), 0);
	assert_int_equal(again, 0);
	assert_int_equal(region_device(&one, "GPU-b", &again), 0);
	assert_int_equal(again, 1);
	assert_int_equal(atomic_load(&one.file->own.device_count), 2);
	region_drop_fd(&two);
	assert_int_equal(region_device(&two, "GPU-a", &again), 0);
	assert_int_equal(again, 0);
	region_close(&one);
	region_close(&two);
}

static void there_is_room_for_sixteen_devices(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned device = 99;
	char uuid[32];

	assert_int_equal(region_open(s->file, &region), 0);
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		snprintf(uuid, sizeof(uuid), "GPU-%u", i);
		assert_int_equal(region_device(&region, uuid, &device), 0);
		memcpy(uuid, "MIG-", 4); /* as NVML calls an instance that is GPU- to CUDA */
		assert_int_equal(region_device(&region, uuid, &device), 0);
		assert_int_equal(device, i);
	}
	device = 99;
	assert_int_equal(region_device(&region, "GPU-16", &device), -ENOSPC);
	assert_int_equal(device, 99);
	assert_int_equal(region_device(&region, "GPU-7", &device), 0);
	assert_int_equal(device, 7);
	region_close(&region);
}

static void a_hostile_count_of_devices_is_not_believed(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned device = 99;

	assert_int_equal(region_open(s->file, &region), 0);
	memset(region.file->hami.uuids, 'x', sizeof(region.file->hami.uuids));
	atomic_store(&region.file->own.device_count, UINT32_MAX);
	assert_int_equal(region_device(&region, "GPU-a", &device), 0);
	assert_int_equal(device, 0);
	assert_string_equal(region.file->hami.uuids[0], "GPU-a");
	assert_int_equal(atomic_load(&region.file->hami.device_count), REGION_DEVICES);
	for (unsigned i = 0; i < REGION_DEVICES; i++)
		atomic_store(&region.file->own.devices[i].key, UINT64_MAX - i);
	device = 99;
	assert_int_equal(region_device(&region, "GPU-a", &device), -EBADMSG);
	assert_int_equal(region_device(&region, "GPU-b", &device), -ENOSPC);
	assert_int_equal(device, 99);
	region_close(&region);
}

/* The entry was taken, and not named: whoever comes next finishes what the other began. */
static void a_process_that_stops_while_it_adds_a_device_delays_nobody(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned device = 99;

	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(region_device(&region, "GPU-a", &device), 0);
	memset(region.file->hami.uuids[0], 0, REGION_UUID_BYTES);
	atomic_store(&region.file->own.device_count, 0);
	assert_int_equal(region_device(&region, "GPU-b", &device), 0);
	assert_int_equal(device, 1);
	assert_int_equal(region_device(&region, "GPU-a", &device), 0);
	assert_int_equal(device, 0);
	assert_string_equal(region.file->hami.uuids[0], "GPU-a");
	assert_int_equal(atomic_load(&region.file->own.device_count), 2);
	region_close(&region);
}

struct crowd {
	const char *path;
	_Atomic uint32_t *ready;
	unsigned first;
};

/* All devices, each process beginning with another one, at the same instant. */
static int add_devices_at_once(int fd, void *argument)
{
	struct crowd *crowd = argument;
	struct region region = REGION_NULL;
	uint64_t found = 0;

	if (region_open(crowd->path, &region) != 0)
		return 1;
	atomic_fetch_add(crowd->ready, 1);
	while (atomic_load(crowd->ready) < CREATORS)
		sched_yield();
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		unsigned number = (crowd->first + i) % REGION_DEVICES, device;
		char uuid[32];

		snprintf(uuid, sizeof(uuid), "GPU-%u", number);
		if (region_device(&region, uuid, &device) != 0)
			return 2;
		found |= (uint64_t)device << 4 * number;
	}
	child_say(fd, found);
	region_close(&region);
	return 0;
}

static void processes_that_add_devices_at_once_agree_on_their_places(void **state)
{
	struct scratch *s = *state;
	struct crowd crowd = {.path = s->file, .ready = child_shared_memory(4096)};
	struct child children[CREATORS];
	uint64_t found[CREATORS];

	for (int round = 0; round < 10; round++) {
		atomic_store(crowd.ready, 0);
		for (unsigned i = 0; i < CREATORS; i++) {
			crowd.first = i;
			children[i] = child_start(add_devices_at_once, &crowd);
		}
		for (int i = 0; i < CREATORS; i++) {
			found[i] = child_hear(children[i].fd);
			assert_int_equal(child_wait(&children[i]), 0);
			assert_true(found[i] == found[0]);
		}
		assert_int_equal(unlink(s->file), 0);
	}
	munmap(crowd.ready, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_device_has_one_entry_for_all),
		SCRATCH_TEST(there_is_room_for_sixteen_devices),
		SCRATCH_TEST(a_hostile_count_of_devices_is_not_believed),
		SCRATCH_TEST(a_process_that_stops_while_it_adds_a_device_delays_nobody),
		SCRATCH_TEST(processes_that_add_devices_at_once_agree_on_their_places),
	};

	return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
