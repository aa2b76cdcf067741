/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: the books of a process whose memory is away, whoever dies when. */
#include "region/evict.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "region/snapshot.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define HELD_UNITS 40

/* A process of the slice: holds HELD_UNITS of device 0 and one of device 1, and gives them back when told. */
static int join(int fd, void *argument)
{
	struct region region = REGION_NULL;
	unsigned slot, device;

	if (region_open(argument, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		region_device(&region, "GPU-a", &device) != 0 ||
		region_device(&region, "GPU-b", &device) != 0 ||
		ledger_charge(region.file, slot, 0, HELD_UNITS, 1000) != 0 ||
		ledger_charge(region.file, slot, 1, 1, 1000) != 0)
		return 1;
	ledger_note(region.file, slot, 0, CHARGE_PLAIN, HELD_UNITS * REGION_UNIT_BYTES);
	child_say(fd, slot);
	if (child_hear(fd) == UINT64_MAX)
		return 2;
	ledger_uncharge(region.file, slot, 0, HELD_UNITS);
	child_say(fd, 0);
	child_hear(fd);
	return 0;
}

struct scene {
	struct region region;
	struct child child;
	struct evict_process process;
};

static void set_scene(const struct scratch *s, struct scene *ret)
{
	struct region_slot *own;

	*ret = (struct scene){.region = REGION_NULL};
	ret->child = child_start(join, (void *)(uintptr_t)s->file);
	ret->process.slot = (unsigned)child_hear(ret->child.fd);
	assert_int_equal(ret->process.slot, 0);
	assert_int_equal(region_open(s->file, &ret->region), 0);
	own = &ret->region.file->own.slots[0];
	ret->process.pid = atomic_load(&own->pid);
	ret->process.start_time = atomic_load(&own->start_time);
}

static void end_scene(struct scene *s)
{
	child_kill(&s->child);
	region_close(&s->region);
}

static uint64_t evicted(const struct scene *s, unsigned device)
{
	return atomic_load(&s->region.file->own.slots[0].evicted_bytes[device]);
}

static void what_is_evicted_leaves_the_books_and_comes_back_whole(void **state)
{
	struct scene s;
	struct region_file *f;

	set_scene(*state, &s);
	f = s.region.file;
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	assert_int_equal(ledger_used_units(f, 0), 0);
	assert_int_equal(ledger_used_units(f, 1), 0);
	assert_int_equal(ledger_held_units(f, 0, 0), 0);
	assert_int_equal(evicted(&s, 0), HELD_UNITS * REGION_UNIT_BYTES);
	assert_int_equal(evicted(&s, 1), REGION_UNIT_BYTES);
	assert_int_equal(
		f->own.slots[0].kind_bytes[0][CHARGE_PLAIN], HELD_UNITS * REGION_UNIT_BYTES);
	assert_int_equal(f->hami.slots[0].used[0].total_bytes, 0);
	assert_int_equal(f->hami.slots[0].status, HAMI_SUSPENDED);
	assert_true(ledger_audit(f, 0));
	assert_int_equal(evict_return(&s.region, &s.process), 0);
	assert_int_equal(ledger_used_units(f, 0), HELD_UNITS);
	assert_int_equal(ledger_held_units(f, 0, 0), HELD_UNITS);
	assert_int_equal(ledger_used_units(f, 1), 1);
	assert_int_equal(evicted(&s, 0), 0);
	assert_int_equal(f->hami.slots[0].used[0].total_bytes, HELD_UNITS * REGION_UNIT_BYTES);
	assert_int_equal(f->hami.slots[0].status, HAMI_RUNNING);
	assert_true(ledger_audit(f, 0));
	/* and the process gives back what it had as if nothing had been */
	child_say(s.child.fd, 1);
	assert_int_equal(child_hear(s.child.fd), 0);
	assert_int_equal(ledger_used_units(f, 0), 0);
	end_scene(&s);
}

static void what_it_takes_to_come_back_is_the_same_wherever_it_is(void **state)
{
	uint64_t bytes[REGION_DEVICES];
	struct scene s;

	set_scene(*state, &s);
	for (int round = 0; round < 3; round++) {
		evict_weigh(&s.region, &s.process, bytes);
		assert_int_equal(bytes[0], HELD_UNITS * REGION_UNIT_BYTES);
		assert_int_equal(bytes[1], REGION_UNIT_BYTES);
		assert_int_equal(bytes[2], 0);
		if (round == 0)
			assert_int_equal(evict_take(&s.region, &s.process), 0);
		else
			assert_int_equal(evict_return(&s.region, &s.process), 0);
	}
	end_scene(&s);
}

static void doing_it_twice_changes_nothing_more(void **state)
{
	struct scene s;

	set_scene(*state, &s);
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	assert_int_equal(evicted(&s, 0), HELD_UNITS * REGION_UNIT_BYTES);
	assert_int_equal(evict_return(&s.region, &s.process), 0);
	assert_int_equal(evict_return(&s.region, &s.process), 0);
	assert_int_equal(ledger_used_units(s.region.file, 0), HELD_UNITS);
	end_scene(&s);
}

static void what_comes_back_is_charged_though_it_does_not_fit(void **state)
{
	struct scene s;

	set_scene(*state, &s);
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	ledger_charge_anyway(s.region.file, 7, 0, 990);
	assert_int_equal(evict_return(&s.region, &s.process), 0);
	assert_int_equal(ledger_used_units(s.region.file, 0), 990 + HELD_UNITS);
	end_scene(&s);
}

static void another_process_in_the_slot_is_left_alone(void **state)
{
	struct evict_process other;
	struct scene s;

	set_scene(*state, &s);
	other = s.process;
	other.start_time++;
	assert_int_equal(evict_take(&s.region, &other), EVICT_E_GONE);
	other = s.process;
	other.pid++;
	assert_int_equal(evict_return(&s.region, &other), EVICT_E_GONE);
	other = s.process;
	other.slot = 3;
	assert_int_equal(evict_take(&s.region, &other), EVICT_E_GONE);
	other.slot = REGION_SLOTS;
	assert_int_equal(evict_take(&s.region, &other), EVICT_E_GONE);
	assert_int_equal(ledger_used_units(s.region.file, 0), HELD_UNITS);
	child_kill(&s.child);
	assert_int_equal(evict_take(&s.region, &s.process), EVICT_E_GONE);
	region_close(&s.region);
}

static void books_that_do_not_come_to_rest_are_left_alone(void **state)
{
	struct scene s;

	set_scene(*state, &s);
	atomic_fetch_add(&s.region.file->own.slots[0].held[3], 1);
	assert_int_equal(evict_take(&s.region, &s.process), EVICT_E_BUSY);
	assert_int_equal(evicted(&s, 0), 0);
	assert_int_equal(ledger_used_units(s.region.file, 0), HELD_UNITS);
	end_scene(&s);
}

static void an_evicted_process_that_dies_leaves_nothing(void **state)
{
	struct scene s;
	struct region_slot *own;
	unsigned reaped = 0;

	set_scene(*state, &s);
	own = &s.region.file->own.slots[0];
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	atomic_store(&own->busy_until_ns[2], 77);
	child_kill(&s.child);
	while (reaped == 0)
		assert_int_equal(slot_reap(&s.region, &reaped), 0);
	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		assert_int_equal(own->evicted_bytes[d], 0);
		assert_int_equal(own->busy_until_ns[d], 0);
	}
	assert_int_equal(ledger_used_units(s.region.file, 0), 0);
	assert_int_equal(evict_return(&s.region, &s.process), EVICT_E_GONE);
	assert_int_equal(ledger_used_units(s.region.file, 0), 0);
	region_close(&s.region);
}

static void who_takes_the_slot_next_begins_with_nothing_evicted(void **state)
{
	struct scene s;
	unsigned slot = 99;

	set_scene(*state, &s);
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	child_kill(&s.child);
	/* as if it had been freed by somebody who did not know of evictions */
	atomic_store(&s.region.file->own.slots[0].state, SLOT_FREE);
	assert_int_equal(slot_claim(&s.region, &slot), 0);
	assert_int_equal(slot, 0);
	assert_int_equal(evicted(&s, 0), 0);
	region_close(&s.region);
}

static void a_slot_that_is_being_changed_is_neither_reaped_nor_claimed(void **state)
{
	struct scene s;
	unsigned reaped = 0, slot = 99;
	int fd;

	set_scene(*state, &s);
	assert_int_equal(region_lock(&s.region, REGION_LOCK_EVICT, &fd), 0);
	child_kill(&s.child);
	assert_int_equal(slot_reap(&s.region, &reaped), 0);
	assert_int_equal(reaped, 0);
	assert_int_equal(ledger_used_units(s.region.file, 0), HELD_UNITS);
	atomic_store(&s.region.file->own.slots[0].state, SLOT_FREE);
	assert_int_equal(slot_claim(&s.region, &slot), 0);
	assert_int_equal(slot, 1);
	atomic_store(&s.region.file->own.slots[0].state, SLOT_LIVE);
	region_unlock(fd, REGION_LOCK_EVICT);
	while (reaped == 0)
		assert_int_equal(slot_reap(&s.region, &reaped), 0);
	assert_int_equal(ledger_used_units(s.region.file, 0), 0);
	region_close(&s.region);
}

/* Slot 5 stands for who asks. */
static void who_brings_another_back_holds_its_books(void **state)
{
	struct region_slot *asker;
	struct evict_hold hold;
	struct scene s;
	int fd;

	set_scene(*state, &s);
	asker = &s.region.file->own.slots[5];
	atomic_store(
		&asker->pid_namespace, atomic_load(&s.region.file->own.slots[0].pid_namespace));
	assert_int_equal(evict_hold(&s.region, 5, s.process.pid + 1, &hold), EVICT_E_GONE);
	assert_int_equal(evict_hold(&s.region, 5, s.process.pid, &hold), 0);
	assert_int_equal(hold.slot, 0);
	fd = open(((const struct scratch *)*state)->file, O_RDWR | O_CLOEXEC);
	assert_int_equal(file_lock_byte(fd, REGION_LOCK_EVICT), -EAGAIN);
	evict_let_go(&s.region, &hold);
	assert_int_equal(file_lock_byte(fd, REGION_LOCK_EVICT), 0);
	close(fd);
	/* The same number elsewhere is another process. */
	atomic_fetch_add(&asker->pid_namespace, 1);
	assert_int_equal(evict_hold(&s.region, 5, s.process.pid, &hold), EVICT_E_GONE);
	atomic_fetch_sub(&asker->pid_namespace, 1);
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	assert_int_equal(evict_hold(&s.region, 5, s.process.pid, &hold), EVICT_E_AWAY);
	assert_int_equal(evict_return(&s.region, &s.process), 0);
	/* nor while others are away */
	atomic_store(&s.region.file->own.slots[9].evicted_bytes[3], 1);
	assert_int_equal(evict_hold(&s.region, 5, s.process.pid, &hold), EVICT_E_AWAY);
	end_scene(&s);
}

static void what_may_move_without_a_change_does_not_stay(void **state)
{
	struct evict_hold hold;
	uint64_t changes;
	struct scene s;

	set_scene(*state, &s);
	atomic_store(&s.region.file->own.slots[5].pid_namespace,
		atomic_load(&s.region.file->own.slots[0].pid_namespace));
	atomic_store(&s.region.file->own.slot_high, 6);
	assert_true(evict_stays(&s.region, 0));
	ledger_note(s.region.file, 0, 0, CHARGE_MANAGED, REGION_UNIT_BYTES);
	assert_false(evict_stays(&s.region, 0));
	assert_true(evict_stays(&s.region, 1));
	ledger_note(s.region.file, 0, 0, CHARGE_MANAGED, -(int64_t)REGION_UNIT_BYTES);
	changes = ledger_changes(s.region.file, 0);
	assert_int_equal(evict_hold(&s.region, 5, s.process.pid, &hold), 0);
	assert_false(evict_stays(&s.region, 0));
	assert_int_not_equal(ledger_changes(s.region.file, 0), changes);
	changes = ledger_changes(s.region.file, 0);
	evict_let_go(&s.region, &hold);
	assert_true(evict_stays(&s.region, 0));
	assert_int_not_equal(ledger_changes(s.region.file, 0), changes);
	assert_int_equal(ledger_used_units(s.region.file, 0), HELD_UNITS);
	end_scene(&s);
}

static void absurd_words_neither_crash_nor_hang(void **state)
{
	struct scene s;

	set_scene(*state, &s);
	atomic_store(&s.region.file->own.slots[0].evicted_bytes[5], UINT64_MAX);
	atomic_store(&s.region.file->own.slots[0].held[6], UINT64_C(0xffffffff) << 32);
	assert_int_equal(evict_return(&s.region, &s.process), 0);
	assert_int_equal(evict_take(&s.region, &s.process), 0);
	assert_int_equal(ledger_used_units(s.region.file, 0), 0);
	end_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(what_is_evicted_leaves_the_books_and_comes_back_whole),
		SCRATCH_TEST(what_it_takes_to_come_back_is_the_same_wherever_it_is),
		SCRATCH_TEST(doing_it_twice_changes_nothing_more),
		SCRATCH_TEST(what_comes_back_is_charged_though_it_does_not_fit),
		SCRATCH_TEST(another_process_in_the_slot_is_left_alone),
		SCRATCH_TEST(books_that_do_not_come_to_rest_are_left_alone),
		SCRATCH_TEST(an_evicted_process_that_dies_leaves_nothing),
		SCRATCH_TEST(who_takes_the_slot_next_begins_with_nothing_evicted),
		SCRATCH_TEST(a_slot_that_is_being_changed_is_neither_reaped_nor_claimed),
		SCRATCH_TEST(who_brings_another_back_holds_its_books),
		SCRATCH_TEST(what_may_move_without_a_change_does_not_stay),
		SCRATCH_TEST(absurd_words_neither_crash_nor_hang),
	};

	return cmocka_run_group_tests_name("evict", tests, NULL, NULL);
}
