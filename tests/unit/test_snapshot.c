/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: the living and what they hold, from a file that may shrink or lie meanwhile. */
#include "region/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

static struct snapshot snapshot;

/* A member of the slice: holds as many units of device 1 as it is told. */
static int join(int fd, void *argument)
{
	struct region region = REGION_NULL;
	unsigned slot, device;

	if (region_open(argument, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		region_device(&region, "GPU-a", &device) != 0 ||
		region_device(&region, "GPU-b", &device) != 0)
		return 1;
	if (ledger_charge(region.file, slot, device, child_hear(fd), 1000) != 0)
		return 2;
	ledger_note(region.file, slot, device, CHARGE_POOL, 4096);
	atomic_store(&region.file->hami.limit_bytes[device], 1000 * REGION_UNIT_BYTES);
	atomic_fetch_add(&region.file->own.devices[device].refusal_count, 1);
	child_say(fd, slot);
	child_hear(fd);
	return 0;
}

static struct child start_member(const struct scratch *s, unsigned units)
{
	struct child c = child_start(join, (void *)(uintptr_t)s->file);

	child_say(c.fd, units);
	assert_true(child_hear(c.fd) < REGION_SLOTS);
	return c;
}

static void poke(const struct scratch *s, size_t at, const void *bytes, size_t count)
{
	int fd = open(s->file, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, count, (off_t)at), count);
	close(fd);
}

static void a_devices_compute_time_is_told_as_it_was_written(void **state)
{
	struct scratch *s = *state;
	struct child one = start_member(s, 3);
	struct region region = REGION_NULL;
	struct region_compute *c;

	assert_int_equal(region_open(s->file, &region), 0);
	c = &region.file->own.compute[1];
	atomic_store(&c->busy_ns, 11);
	atomic_store(&c->launches, 12);
	atomic_store(&c->budget_wait_ns, 13);
	atomic_store(&c->turn_wait_ns, 14);
	atomic_store(&c->lent_ns, 15);
	atomic_store(&c->counted_permille, 600);
	atomic_store(&c->limits, UINT64_C(300) << 48 | UINT64_C(500) << 32 | UINT64_C(200) << 16 |
					 2 << 8 | REGION_COMPUTE_LIMITED | REGION_COMPUTE_TURNS);
	atomic_store(&region.file->own.slots[0].evicted_bytes[1], 4096);
	atomic_store(&region.file->own.slots[0].busy_until_ns[1], 99);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.devices[0].compute.state, 0);
	assert_int_equal(snapshot.devices[1].compute.busy_ns, 11);
	assert_int_equal(snapshot.devices[1].compute.launches, 12);
	assert_int_equal(snapshot.devices[1].compute.budget_wait_ns, 13);
	assert_int_equal(snapshot.devices[1].compute.turn_wait_ns, 14);
	assert_int_equal(snapshot.devices[1].compute.lent_ns, 15);
	assert_int_equal(snapshot.devices[0].compute.counted_permille, 1000);
	assert_int_equal(snapshot.devices[1].compute.counted_permille, 600);
	assert_int_equal(snapshot.devices[1].compute.cores_permille, 300);
	assert_int_equal(snapshot.devices[1].compute.cap_permille, 500);
	assert_int_equal(snapshot.devices[1].compute.weight, 200);
	assert_int_equal(snapshot.devices[1].compute.priority, 2);
	assert_int_equal(
		snapshot.devices[1].compute.state, REGION_COMPUTE_LIMITED | REGION_COMPUTE_TURNS);
	assert_int_equal(snapshot.processes[0].evicted_bytes[1], 4096);
	assert_int_equal(snapshot.processes[0].busy_until_ns[1], 99);
	region_close(&region);
	child_kill(&one);
}

static void living_processes_and_what_they_hold_are_listed(void **state)
{
	struct scratch *s = *state;
	struct child one = start_member(s, 3), two = start_member(s, 40);

	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.device_count, 2);
	assert_string_equal(snapshot.devices[0].uuid, "GPU-a");
	assert_string_equal(snapshot.devices[1].uuid, "GPU-b");
	assert_int_equal(snapshot.devices[0].used_bytes, 0);
	assert_int_equal(snapshot.devices[1].used_bytes, 43 * REGION_UNIT_BYTES);
	assert_int_equal(snapshot.devices[0].limit_bytes, 0);
	assert_int_equal(snapshot.devices[1].limit_bytes, 1000 * REGION_UNIT_BYTES);
	assert_int_equal(snapshot.devices[1].refusal_count, 2);
	assert_int_equal(snapshot.process_count, 2);
	assert_int_equal(snapshot.processes[0].pid, one.pid);
	assert_int_equal(snapshot.processes[1].pid, two.pid);
	assert_string_equal(snapshot.processes[0].command, "test_snapshot");
	assert_int_equal(snapshot.processes[0].held_bytes[1], 3 * REGION_UNIT_BYTES);
	assert_int_equal(snapshot.processes[1].held_bytes[1], 40 * REGION_UNIT_BYTES);
	assert_int_equal(snapshot.processes[1].kind_bytes[1][CHARGE_POOL], 4096);
	assert_true(snapshot.processes[0].start_time > 0);
	child_kill(&one);
	child_kill(&two);
}

static void the_dead_are_not_listed_although_nobody_has_reaped_them(void **state)
{
	struct scratch *s = *state;
	struct child one = start_member(s, 3), two = start_member(s, 40);
	uint64_t used = 0, limit = 0;

	child_kill(&one);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.process_count, 1);
	assert_int_equal(snapshot.processes[0].pid, two.pid);
	assert_int_equal(snapshot.devices[1].used_bytes, 40 * REGION_UNIT_BYTES);
	assert_int_equal(snapshot_device_use(s->file, "GPU-b", &used, &limit), 0);
	assert_int_equal(used, 40 * REGION_UNIT_BYTES);
	assert_int_equal(limit, 1000 * REGION_UNIT_BYTES);
	assert_int_equal(snapshot_device_use(s->file, "MIG-b", &used, &limit), 0);
	assert_int_equal(used, 40 * REGION_UNIT_BYTES);
	child_kill(&two);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.process_count, 0);
}

struct visits {
	unsigned count;
	struct snapshot_member member[4];
};

static void visit(const struct snapshot_member *member, void *argument)
{
	struct visits *visits = argument;

	if (visits->count < 4)
		visits->member[visits->count] = *member;
	visits->count++;
}

static void members_are_shown_with_what_they_hold_of_one_device(void **state)
{
	struct scratch *s = *state;
	struct child one = start_member(s, 3), two = start_member(s, 40);
	struct visits visits = {0};
	size_t at = offsetof(struct region_file, hami.slots[1].host_pid);
	uint32_t host_pid = 4711;

	poke(s, at, &host_pid, sizeof(host_pid));
	assert_int_equal(snapshot_visit(s->file, "MIG-b", visit, &visits), 0);
	assert_int_equal(visits.count, 2);
	assert_int_equal(visits.member[0].pid, one.pid);
	assert_int_equal(visits.member[0].held_bytes, 3 * REGION_UNIT_BYTES);
	assert_int_equal(visits.member[1].held_bytes, 40 * REGION_UNIT_BYTES);
	assert_int_equal(visits.member[1].host_pid, 4711);
	assert_string_equal(visits.member[1].command, "test_snapshot");
	assert_true(visits.member[0].pid_namespace > 0);
	child_kill(&one);
	visits.count = 0;
	assert_int_equal(snapshot_visit(s->file, NULL, visit, &visits), 0);
	assert_int_equal(visits.count, 1);
	assert_int_equal(visits.member[0].pid, two.pid);
	assert_int_equal(visits.member[0].held_bytes, 0);
	assert_int_equal(snapshot_visit(s->folder, NULL, visit, &visits), -EISDIR);
	assert_int_equal(visits.count, 1);
	child_kill(&two);
}

static void the_share_of_the_cores_is_told_and_bounded(void **state)
{
	struct scratch *s = *state;
	struct child c = start_member(s, 3);
	size_t at = offsetof(struct region_file, hami.sm_limit_percent[1]);
	unsigned percent = 7;

	assert_int_equal(snapshot_core_percent(s->file, "GPU-c", &percent), 0);
	assert_int_equal(percent, 0);
	poke(s, at, &(uint64_t){30}, 8);
	assert_int_equal(snapshot_core_percent(s->file, "GPU-b", &percent), 0);
	assert_int_equal(percent, 30);
	poke(s, at, &(uint64_t){UINT64_MAX}, 8);
	assert_int_equal(snapshot_core_percent(s->file, "GPU-b", &percent), 0);
	assert_int_equal(percent, 100);
	child_kill(&c);
	assert_int_equal(unlink(s->file), 0);
	assert_int_equal(snapshot_core_percent(s->file, "GPU-b", &percent), -ENOENT);
	assert_int_equal(percent, 100);
}

static void a_device_that_the_region_does_not_know_is_not_in_use(void **state)
{
	struct scratch *s = *state;
	struct child c = start_member(s, 3);
	uint64_t used = 9, limit = 9;

	assert_int_equal(snapshot_device_use(s->file, "GPU-c", &used, &limit), 0);
	assert_int_equal(used, 0);
	assert_int_equal(limit, 0);
	assert_int_equal(snapshot_device_use(s->file, "", &used, &limit), 0);
	assert_int_equal(used, 0);
	child_kill(&c);
}

static void an_observer_is_not_a_member(void **state)
{
	struct scratch *s = *state;
	struct child c = start_member(s, 3);

	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.process_count, 1);
	child_kill(&c);
}

static void what_is_no_region_is_refused(void **state)
{
	struct scratch *s = *state;
	uint64_t used = 9, limit = 9, wrong = 0x1234;
	struct child c = start_member(s, 3);

	child_kill(&c);
	assert_int_equal(snapshot_read(s->folder, &snapshot), -EISDIR);
	poke(s, offsetof(struct region_file, own.version), &wrong, 4);
	assert_int_equal(snapshot_read(s->file, &snapshot), REGION_E_VERSION);
	poke(s, offsetof(struct region_file, own.magic), &wrong, 8);
	assert_int_equal(snapshot_read(s->file, &snapshot), REGION_E_FOREIGN);
	assert_int_equal(snapshot_device_use(s->file, "GPU-a", &used, &limit), REGION_E_FOREIGN);
	assert_int_equal(unlink(s->file), 0);
	assert_int_equal(snapshot_read(s->file, &snapshot), -ENOENT);
	assert_int_equal(snapshot_device_use(s->file, "GPU-a", &used, &limit), -ENOENT);
	assert_int_equal(mkfifo(s->file, 0666), 0);
	assert_true(snapshot_read(s->file, &snapshot) != 0);
	assert_int_equal(used, 9);
	assert_int_equal(limit, 9);
}

static void a_truncated_region_is_refused_at_every_length(void **state)
{
	struct scratch *s = *state;
	struct child c = start_member(s, 3);
	size_t slot_end = offsetof(struct region_file, own.slots) + sizeof(struct region_slot);
	size_t step = 1;

	for (size_t length = slot_end - 1; length > 0; length = length > step ? length - step : 0) {
		assert_int_equal(truncate(s->file, (off_t)length), 0);
		assert_true(snapshot_read(s->file, &snapshot) > 0);
		step = step < 65536 ? step * 2 : step;
	}
	assert_int_equal(truncate(s->file, 0), 0);
	assert_int_equal(snapshot_read(s->file, &snapshot), REGION_E_FOREIGN);
	child_kill(&c);
}

static int shrink_and_grow(int fd, void *argument)
{
	const char *path = argument;
	off_t size = sizeof(struct region_file);

	for (unsigned i = 0;; i++) {
		off_t at = i % 3 == 0 ? size / 2 : i % 3 == 1 ? size - 5000 : size * 7 / 8;

		if (truncate(path, at) < 0 || truncate(path, size) < 0)
			return 1;
	}
}

static void a_file_that_shrinks_meanwhile_harms_nobody(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c;
	uint64_t end;

	assert_int_equal(region_open(s->file, &region), 0);
	atomic_store(&region.file->own.slot_high, REGION_SLOTS);
	region_close(&region);
	c = child_start(shrink_and_grow, s->file);
	for (end = clock_now_ns() + 100000000; clock_now_ns() < end;)
		assert_true(snapshot_read(s->file, &snapshot) >= 0);
	child_kill(&c);
}

static void hostile_counts_and_strings_are_bounded(void **state)
{
	struct scratch *s = *state;
	struct child c = start_member(s, 3);
	uint32_t most = UINT32_MAX;
	char wild[REGION_UUID_BYTES];
	uint64_t used, limit;

	memset(wild, 'x', sizeof(wild));
	poke(s, offsetof(struct region_file, own.device_count), &most, 4);
	poke(s, offsetof(struct region_file, own.slot_high), &most, 4);
	for (int i = 0; i < REGION_DEVICES; i++)
		poke(s, offsetof(struct region_file, hami.uuids) + (size_t)i * sizeof(wild), wild,
			sizeof(wild));
	poke(s, offsetof(struct region_file, own.slots[0].command), wild, 16);
	for (int d = 0; d < REGION_DEVICES; d++)
		poke(s, offsetof(struct region_file, own.slots[0].held) + (size_t)d * 8,
			&(uint64_t){UINT64_MAX}, 8);
	poke(s, offsetof(struct region_file, own.slots[1].state), &most, 4);
	poke(s, offsetof(struct region_file, own.slots[2].state), &(uint32_t){SLOT_LIVE}, 4);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.device_count, REGION_DEVICES);
	assert_int_equal(snapshot.process_count, 1);
	assert_int_equal(strlen(snapshot.processes[0].command), 16);
	for (int i = 0; i < REGION_DEVICES; i++) {
		assert_int_equal(strlen(snapshot.devices[i].uuid), REGION_UUID_BYTES - 1);
		assert_true(
			snapshot.devices[i].used_bytes == (uint64_t)UINT32_MAX * REGION_UNIT_BYTES);
	}
	wild[REGION_UUID_BYTES - 1] = '\0';
	assert_int_equal(snapshot_device_use(s->file, wild, &used, &limit), 0);
	child_kill(&c);
}

static void a_slice_with_all_slots_taken_fits(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned slot;

	assert_int_equal(region_open(s->file, &region), 0);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.process_count, REGION_SLOTS);
	region_close(&region);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.process_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_devices_compute_time_is_told_as_it_was_written),
		SCRATCH_TEST(living_processes_and_what_they_hold_are_listed),
		SCRATCH_TEST(the_dead_are_not_listed_although_nobody_has_reaped_them),
		SCRATCH_TEST(members_are_shown_with_what_they_hold_of_one_device),
		SCRATCH_TEST(the_share_of_the_cores_is_told_and_bounded),
		SCRATCH_TEST(a_device_that_the_region_does_not_know_is_not_in_use),
		SCRATCH_TEST(an_observer_is_not_a_member),
		SCRATCH_TEST(what_is_no_region_is_refused),
		SCRATCH_TEST(a_truncated_region_is_refused_at_every_length),
		SCRATCH_TEST(a_file_that_shrinks_meanwhile_harms_nobody),
		SCRATCH_TEST(hostile_counts_and_strings_are_bounded),
		SCRATCH_TEST(a_slice_with_all_slots_taken_fits),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
