/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region file's bytes, read with pread() at literal offsets: HAMi's monitor has no other way to
 * understand them, and a process of an older release maps the same file.
 */
#include "region/layout.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define HAMI_SLOTS	1856
#define HAMI_SLOT_SIZE	1960
#define OWN		2011136
#define OWN_SLOTS	(OWN + 2112)
#define OWN_SLOT_SIZE	2112
#define OWN_SHARED	(OWN_SLOTS + 1024 * OWN_SLOT_SIZE + 192)
#define OWN_SHARED_SIZE 256
#define OWN_COMPUTE	(OWN_SHARED + 1024 * OWN_SHARED_SIZE)
#define OWN_COMPUTE_SIZE \
	(128 + 4096 * 8 + 1024 * 8 + 64 + 64 + 1024 * 8 + 64) /* of each of 16 devices */
#define OWN_LOOKED (OWN_COMPUTE + 16 * OWN_COMPUTE_SIZE)

static int fd = -1;

static uint64_t number_at(long at, size_t size)
{
	unsigned char bytes[8];
	uint64_t value = 0;

	assert_int_equal(pread(fd, bytes, size, at), size);
	for (size_t i = size; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static uint32_t u32_at(long at)
{
	return (uint32_t)number_at(at, 4);
}

static uint64_t u64_at(long at)
{
	return number_at(at, 8);
}

static void assert_zero(long from, long to)
{
	unsigned char buffer[4096];

	while (from < to) {
		size_t part =
			(size_t)(to - from) < sizeof(buffer) ? (size_t)(to - from) : sizeof(buffer);

		assert_int_equal(pread(fd, buffer, part, from), part);
		for (size_t i = 0; i < part; i++)
			assert_int_equal(buffer[i], 0);
		from += (long)part;
	}
}

/* A region with one device and one slot, open for reading as fd. */
static unsigned make_region(const struct scratch *s, struct region *region)
{
	unsigned device, slot;

	assert_int_equal(region_open(s->file, region), 0);
	assert_int_equal(region_device(region, "GPU-first", &device), 0);
	assert_int_equal(device, 0);
	assert_int_equal(region_device(region, "GPU-second", &device), 0);
	assert_int_equal(device, 1);
	assert_int_equal(slot_claim(region, &slot), 0);
	fd = open(s->file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return slot;
}

static void close_region(struct region *region)
{
	close(fd);
	region_close(region);
}

static void a_new_file_begins_with_hamis_version_1_2(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;

	assert_int_equal(region_open(s->file, &region), 0);
	fd = open(s->file, O_RDONLY | O_CLOEXEC);
	assert_int_equal(u32_at(0), 19920718);
	assert_int_equal(u32_at(4), 1);
	assert_int_equal(u32_at(8), 2);
	assert_int_equal(u32_at(12), 0);
	assert_int_equal(u64_at(16), 0);
	assert_int_equal(u32_at(24), 1);
	assert_zero(28, 1728);
	for (int i = 0; i < 16; i++)
		assert_int_equal(u64_at(1728 + 8 * i), 100);
	assert_zero(HAMI_SLOTS, 2008900);
	assert_int_equal(u32_at(2008900), 1);
	assert_int_equal(u32_at(2008904), 2);
	assert_int_equal(u32_at(2008908), 1);
	assert_int_equal(u64_at(2008912), 0);
	assert_int_equal(u32_at(2008920), 1);
	assert_zero(2008924, OWN);
	close_region(&region);
}

static void our_own_part_stands_behind_it(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct stat info;
	char magic[8];

	assert_int_equal(region_open(s->file, &region), 0);
	fd = open(s->file, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &info), 0);
	assert_int_equal(info.st_size, OWN_LOOKED + 8 * 1024);
	assert_int_equal(pread(fd, magic, sizeof(magic), OWN), sizeof(magic));
	assert_memory_equal(magic, "CANTLOP1", 8);
	assert_int_equal(u32_at(OWN + 8), 14);
	assert_int_equal(u32_at(OWN + 12), info.st_size);
	assert_zero(OWN + 16, OWN + 48);
	/* the clock's */
	assert_int_not_equal(u64_at(OWN + 48), 0);
	assert_int_not_equal(u64_at(OWN + 56), 0);
	assert_zero(OWN + 64, info.st_size);
	close_region(&region);
}

static void devices_are_where_hamis_monitor_looks(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	char uuid[96];

	make_region(s, &region);
	assert_int_equal(u64_at(56), 2);
	assert_int_equal(pread(fd, uuid, sizeof(uuid), 64), sizeof(uuid));
	assert_string_equal(uuid, "GPU-first");
	assert_int_equal(pread(fd, uuid, sizeof(uuid), 64 + 96), sizeof(uuid));
	assert_string_equal(uuid, "GPU-second");
	atomic_store(&region.file->hami.limit_bytes[1], 12345);
	assert_int_equal(u64_at(1600 + 8), 12345);
	assert_int_equal(u32_at(OWN + 16), 2);
	close_region(&region);
}

static ino_t inode_of(const char *path)
{
	struct stat info = {0};

	/* the time namespace is not there before Linux 5.6 */
	return stat(path, &info) == 0 ? info.st_ino : 0;
}

static void a_process_is_where_hamis_monitor_looks(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;

	assert_int_equal(make_region(s, &region), 0);
	assert_int_equal(u32_at(HAMI_SLOTS), getpid());
	assert_int_equal(u32_at(HAMI_SLOTS + 1928), 1);
	assert_int_equal(u32_at(2008896), 1);
	assert_int_equal(u32_at(OWN + 20), 1);
	assert_int_equal(u32_at(OWN_SLOTS), 1);
	assert_int_equal(u32_at(OWN_SLOTS + 4), getpid());
	assert_true(u64_at(OWN_SLOTS + 8) > 0);
	assert_int_equal(u32_at(OWN_SLOTS + 16), inode_of("/proc/self/ns/pid"));
	assert_int_equal(u32_at(OWN_SLOTS + 20), inode_of("/proc/self/ns/time"));
	close_region(&region);
}

static void what_a_process_holds_is_where_hamis_monitor_looks(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned slot = make_region(s, &region);
	long device_1 = HAMI_SLOTS + 8 + 64;

	assert_int_equal(ledger_charge(region.file, slot, 1, 32, 100), 0);
	ledger_note(region.file, slot, 1, CHARGE_CONTEXT, 65536);
	ledger_note(region.file, slot, 1, CHARGE_MODULE, 3);
	ledger_note(region.file, slot, 1, CHARGE_PLAIN, 2 * 65536);
	assert_int_equal(u64_at(device_1), 65536);
	assert_int_equal(u64_at(device_1 + 8), 3);
	assert_int_equal(u64_at(device_1 + 16), 2 * 65536);
	assert_int_equal(u64_at(device_1 + 24), 0);
	assert_int_equal(u64_at(device_1 + 32), 3 * 65536 + 3);
	assert_int_equal(u64_at(OWN + 64 + 128) >> 32, 32);
	assert_int_equal(u64_at(OWN_SLOTS + 40 + 8), UINT64_C(32) << 32);
	assert_int_equal(u64_at(OWN_SLOTS + 168 + 88 + 8 * CHARGE_PLAIN), 2 * 65536);
	close_region(&region);
}

static void the_kinds_of_charges_keep_their_order(void **state)
{
	assert_int_equal(CHARGE_CONTEXT, 0);
	assert_int_equal(CHARGE_PLAIN, 1);
	assert_int_equal(CHARGE_MANAGED, 2);
	assert_int_equal(CHARGE_MAPPED, 3);
	assert_int_equal(CHARGE_POOL, 4);
	assert_int_equal(CHARGE_MODULE, 5);
	assert_int_equal(CHARGE_ARRAY, 6);
	assert_int_equal(CHARGE_UNATTRIBUTED, 10);
	assert_int_equal(CHARGE_KIND_COUNT, 11);
}

static void locks_lie_behind_any_data(void **state)
{
	assert_int_equal(REGION_LOCK_SLOTS, INT64_C(1099511627776));
	assert_true(sizeof(struct region_file) < REGION_LOCK_SLOTS);
	assert_int_equal(REGION_LOCK_SHARED - REGION_LOCK_SLOTS, REGION_SLOTS);
	assert_int_equal(REGION_LOCK_EVICT - REGION_LOCK_SHARED, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_new_file_begins_with_hamis_version_1_2),
		SCRATCH_TEST(our_own_part_stands_behind_it),
		SCRATCH_TEST(devices_are_where_hamis_monitor_looks),
		SCRATCH_TEST(a_process_is_where_hamis_monitor_looks),
		SCRATCH_TEST(what_a_process_holds_is_where_hamis_monitor_looks),
		cmocka_unit_test(the_kinds_of_charges_keep_their_order),
		cmocka_unit_test(locks_lie_behind_any_data),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
