/* SPDX-License-Identifier: Apache-2.0 */
/* Shared allocations: charged once, from the first sharing until the last holder lets go. */
#include "region/shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mark.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define KEY 4711u

/* Two slots of one region, as two processes have them. */
struct pair {
	struct region region[2];
	unsigned slot[2];
};

static void start(const struct scratch *s, struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(region_open(s->file, &p->region[i]), 0);
		assert_int_equal(slot_claim(&p->region[i], &p->slot[i]), 0);
	}
	assert_int_equal(ledger_charge(p->region[0].file, p->slot[0], 0, 100, 1000), 0);
}

static void stop(struct pair *p)
{
	region_close(&p->region[0]);
	region_close(&p->region[1]);
}

static uint32_t used(const struct pair *p)
{
	return ledger_used_units(p->region[1].file, 0);
}

static unsigned make_of(struct pair *p, uint64_t units, uint64_t key, uint64_t mark, int fd)
{
	struct shared_memory memory = {
		.slot = p->slot[0], .units = units, .name.key = key, .mark = mark, .fd = fd};
	unsigned shared;

	assert_int_equal(shared_make(&p->region[0], &memory, &shared), 0);
	return shared;
}

/* By its mark, or a handle whose bytes are zeros. */
static int hold(struct pair *p, uint64_t key, unsigned *ret_shared)
{
	return shared_hold(
		&p->region[1], p->slot[1], &(struct shared_name){.key = key}, ret_shared);
}

static void a_shared_allocation_is_charged_until_the_last_holder_lets_go(void **state)
{
	struct pair p;
	unsigned shared, found;

	start(*state, &p);
	shared = make_of(&p, 60, KEY, 0, -1);
	assert_int_equal(used(&p), 100);
	assert_int_equal(ledger_held_units(p.region[0].file, p.slot[0], 0), 40);
	assert_int_equal(hold(&p, KEY + 1, &found), SHARED_E_ABSENT);
	assert_int_equal(hold(&p, KEY, &found), 0);
	assert_int_equal(found, shared);
	shared_let_go(&p.region[0], p.slot[0], shared);
	assert_int_equal(used(&p), 100);
	shared_let_go(&p.region[1], p.slot[1], shared);
	assert_int_equal(used(&p), 40);
	assert_int_equal(hold(&p, KEY, &found), SHARED_E_ABSENT);
	stop(&p);
}

static void it_grows_and_its_key_can_be_taken_away(void **state)
{
	struct pair p;
	unsigned shared, found;

	start(*state, &p);
	shared = make_of(&p, 10, KEY, 0, -1);
	shared_grow(&p.region[0], p.slot[0], shared, 30);
	assert_int_equal(used(&p), 100);
	assert_int_equal(ledger_held_units(p.region[0].file, p.slot[0], 0), 60);
	/* What was reserved in vain comes back. */
	shared_shrink(&p.region[0], p.slot[0], shared, 30);
	assert_int_equal(used(&p), 100);
	assert_int_equal(ledger_held_units(p.region[0].file, p.slot[0], 0), 90);
	shared_grow(&p.region[0], p.slot[0], shared, 30);
	shared_retire(&p.region[0], shared);
	assert_int_equal(hold(&p, KEY, &found), SHARED_E_ABSENT);
	shared_let_go(&p.region[0], p.slot[0], shared);
	assert_int_equal(used(&p), 60);
	stop(&p);
}

static void a_handle_that_is_given_out_again_names_the_new_memory(void **state)
{
	struct pair p;
	unsigned old, new, found;

	start(*state, &p);
	old = make_of(&p, 10, KEY, 0, -1);
	new = make_of(&p, 20, KEY, 0, -1);
	assert_int_not_equal(old, new);
	assert_int_equal(hold(&p, KEY, &found), 0);
	assert_int_equal(found, new);
	stop(&p);
}

/* A key is a hash that can be run backwards: who writes the handle can give it any. */
static void handles_of_one_key_are_told_apart_by_their_bytes(void **state)
{
	struct pair p;
	struct shared_memory memory = {.units = 1, .name = {KEY, {[63] = 1}}, .fd = -1};
	struct shared_name last = {KEY, {[63] = 3}};
	unsigned small, large, found;
	bool is_named;

	start(*state, &p);
	memory.slot = p.slot[0];
	assert_int_equal(shared_make(&p.region[0], &memory, &small), 0);
	memory.name.handle[63] = 2;
	memory.units = 90;
	assert_int_equal(shared_make(&p.region[0], &memory, &large), 0);
	assert_int_equal(shared_hold(&p.region[1], p.slot[1], &memory.name, &found), 0);
	assert_int_equal(found, large);
	memory.name.handle[63] = 1;
	assert_int_equal(shared_hold(&p.region[1], p.slot[1], &memory.name, &found), 0);
	assert_int_equal(found, small);
	assert_int_equal(shared_hold(&p.region[1], p.slot[1], &last, &found), SHARED_E_ABSENT);
	assert_int_equal(hold(&p, KEY, &found), SHARED_E_ABSENT);
	assert_int_equal(shared_is_named(&p.region[0], small, &last, &is_named), 0);
	assert_false(is_named);
	/* What is named anew has its last name alone. */
	assert_int_equal(shared_set_name(&p.region[0], small, &last), 0);
	assert_int_equal(shared_set_name(&p.region[0], small, &last), 0);
	assert_int_equal(shared_is_named(&p.region[0], small, &last, &is_named), 0);
	assert_true(is_named);
	assert_int_equal(shared_hold(&p.region[1], p.slot[1], &last, &found), 0);
	assert_int_equal(found, small);
	assert_int_equal(
		shared_hold(&p.region[1], p.slot[1], &memory.name, &found), SHARED_E_ABSENT);
	stop(&p);
}

static void a_dead_holder_holds_nothing(void **state)
{
	struct pair p;
	unsigned found, reaped;

	start(*state, &p);
	make_of(&p, 60, KEY, 0, -1);
	assert_int_equal(hold(&p, KEY, &found), 0);
	region_close(&p.region[0]);
	assert_int_equal(slot_reap(&p.region[1], &reaped), 0);
	assert_int_equal(used(&p), 60);
	shared_sweep(&p.region[1], p.slot[1]);
	assert_int_equal(used(&p), 60);
	shared_let_go(&p.region[1], p.slot[1], found);
	assert_int_equal(used(&p), 0);
	region_close(&p.region[1]);
}

static void a_descriptor_holds_it_wherever_it_is(void **state)
{
	struct scratch *s = *state;
	struct mark mark = {.id = mark_new_id(MARK_OF_MEMORY), .steps = 1};
	struct pair p;
	char path[400];
	unsigned shared;
	int fd, copy;

	start(s, &p);
	snprintf(path, sizeof(path), "%s.device", s->file);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(mark_set(fd, mark), 0);
	shared = make_of(&p, 60, mark.id, mark.id, fd);
	copy = dup(fd);
	close(fd);
	shared_let_go(&p.region[0], p.slot[0], shared);
	assert_int_equal(used(&p), 100);
	shared_sweep(&p.region[1], p.slot[1]);
	assert_int_equal(used(&p), 100);
	close(copy);
	shared_sweep(&p.region[1], p.slot[1]);
	assert_int_equal(used(&p), 40);
	unlink(path);
	stop(&p);
}

static void where_files_cannot_be_asked_the_charge_stays_until_the_next_boot(void **state)
{
	struct scratch *s = *state;
	struct mark mark = {.id = mark_new_id(MARK_OF_MEMORY)};
	struct pair p;
	char path[400];
	unsigned shared;
	int fd;

	start(s, &p);
	snprintf(path, sizeof(path), "%s.device", s->file);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	shared = make_of(&p, 60, mark.id, mark.id, fd);
	close(fd);
	unlink(path);
	shared_let_go(&p.region[0], p.slot[0], shared);
	assert_int_equal(used(&p), 100);
	atomic_fetch_add(&p.region[0].file->own.shared[shared].boot, 1);
	shared_sweep(&p.region[1], p.slot[1]);
	assert_int_equal(used(&p), 40);
	stop(&p);
}

/* A region may name any file, and root looks at regions, too. */
static void a_file_of_the_kernels_is_not_opened(void **state)
{
	struct shared_file file = {.path = "/proc/version"};
	struct stat s;
	int fd;

	assert_int_equal(stat(file.path, &s), 0);
	file.device = s.st_dev;
	file.inode = s.st_ino;
	assert_int_equal(shared_open_file(&file), -1);
	/* nor is a link followed */
	strcpy(file.path, "/proc/self/exe");
	assert_int_equal(stat(file.path, &s), 0);
	file.device = s.st_dev;
	file.inode = s.st_ino;
	assert_int_equal(shared_open_file(&file), -1);
	snprintf(file.path, sizeof(file.path), "%.190s", ((struct scratch *)*state)->file);
	fd = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fstat(fd, &s), 0);
	close(fd);
	file.device = s.st_dev;
	file.inode = s.st_ino;
	fd = shared_open_file(&file);
	assert_true(fd >= 0);
	close(fd);
}

static void there_is_place_for_so_many(void **state)
{
	struct pair p;
	struct shared_memory memory = {.name.key = 1, .units = 0, .fd = -1};
	unsigned shared;

	start(*state, &p);
	memory.slot = p.slot[0];
	for (unsigned i = 0; i < REGION_SHARED; i++, memory.name.key++)
		assert_int_equal(shared_make(&p.region[0], &memory, &shared), 0);
	assert_int_equal(shared_make(&p.region[0], &memory, &shared), SHARED_E_FULL);
	shared_let_go(&p.region[0], p.slot[0], 500);
	assert_int_equal(shared_make(&p.region[0], &memory, &shared), 0);
	assert_int_equal(shared, 500);
	stop(&p);
}

static void who_cannot_read_which_boot_this_is_takes_what_was_kept_for_kept(void **state)
{
	static const char nowhere[REGION_PATH_BYTES] = "/nowhere";
	struct region_shared j = {.word = 0};
	struct rlimit before, few;

	atomic_store(&j.mark, 1);
	atomic_store(&j.boot, 123);
	assert_false(shared_is_kept_by_files(&j, nowhere));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_true(shared_is_kept_by_files(&j, nowhere));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_shared_allocation_is_charged_until_the_last_holder_lets_go),
		SCRATCH_TEST(it_grows_and_its_key_can_be_taken_away),
		SCRATCH_TEST(a_handle_that_is_given_out_again_names_the_new_memory),
		SCRATCH_TEST(handles_of_one_key_are_told_apart_by_their_bytes),
		SCRATCH_TEST(a_dead_holder_holds_nothing),
		SCRATCH_TEST(a_descriptor_holds_it_wherever_it_is),
		SCRATCH_TEST(where_files_cannot_be_asked_the_charge_stays_until_the_next_boot),
		SCRATCH_TEST(a_file_of_the_kernels_is_not_opened),
		cmocka_unit_test(who_cannot_read_which_boot_this_is_takes_what_was_kept_for_kept),
		SCRATCH_TEST(there_is_place_for_so_many),
	};

	return cmocka_run_group_tests_name("shared allocation", tests, NULL, NULL);
}
