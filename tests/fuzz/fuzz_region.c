/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region that lies to the processes of its slice: the input says which bytes of a right region are
 * others, once before a process comes to it and once while it runs. The process is refused, or what all
 * slots hold stays within the limit at its next charge; and nothing takes long.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "region/snapshot.h"
#include "tests/fuzz/fuzz.h"

#define LIVING	  3 /* slots whose lock somebody holds */
#define DEVICE	  "GPU-a"
#define LIMIT	  500u		       /* units; LIVING * 100 are held from the beginning */
#define CALL_NS	  UINT64_C(1000000000) /* many times what is promised, for a busy machine */
#define TELLING	  offsetof(struct region_own, slots)
#define FEW_SLOTS (8 * sizeof(struct region_slot))

static struct region_file *right, *lying;
static struct snapshot snapshot;
static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static void make_region(void)
{
	struct region region = REGION_NULL;
	unsigned device;
	int fd, other;

	snprintf(path, sizeof(path), "/tmp/fuzz-region-%d", getpid());
	unlink(path);
	atexit(remove_file);
	FUZZ_CHECK(region_open(path, &region) == 0);
	for (unsigned i = 0; i <= LIVING; i++) {
		region.file->own.slots[i].state = SLOT_LIVE;
		FUZZ_CHECK(region_device(&region, DEVICE, &device) == 0);
		FUZZ_CHECK(ledger_charge(region.file, i, device, 100, LEDGER_NO_LIMIT) == 0);
	}
	FUZZ_CHECK(region_device(&region, "GPU-b", &device) == 0);
	region.file->own.slot_high = LIVING + 1;
	right = malloc(sizeof(*right));
	FUZZ_CHECK(right);
	memcpy(right, region.file, sizeof(*right));
	region_close(&region);
	fd = open(path, O_RDWR | O_CLOEXEC);
	other = open(path, O_RDWR | O_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && other >= 0);
	lying = mmap(NULL, sizeof(*lying), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FUZZ_CHECK(lying != MAP_FAILED);
	for (int i = 0; i < LIVING; i++)
		FUZZ_CHECK(file_lock_byte(other, REGION_LOCK_SLOTS + i) == 0);
}

/* Where a byte of the input points to: the telling parts of the file, and any. */
static size_t place(uint8_t part, unsigned offset)
{
	switch (part % 4) {
	case 0:
		return offsetof(struct region_file, own) + offset % TELLING;
	case 1:
		return offsetof(struct region_file, own.slots) + offset % FEW_SLOTS;
	case 2:
		return offset % offsetof(struct region_file, hami.slots);
	default:
		return offset * 61u % sizeof(*right);
	}
}

/* part, offset, how many, with what; parts of 128 and more are for later */
static void lie(const uint8_t *bytes, size_t size, bool is_later)
{
	for (size_t at = 0; at + 5 <= size; at += 5) {
		size_t to = place(bytes[at], (unsigned)(bytes[at + 1] | bytes[at + 2] << 8));
		size_t count = bytes[at + 3] % 128;

		if (count > sizeof(*lying) - to)
			count = sizeof(*lying) - to;
		if (bytes[at] >> 7 == is_later)
			memset((char *)lying + to, bytes[at + 4], count);
	}
}

static uint64_t held_by_all(unsigned device)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < REGION_SLOTS; i++)
		sum += lying->own.slots[i].held[device] >> 32;
	return sum;
}

/* What the tenant library does before a refusal, and around a call that succeeds. */
static void use(struct region *region, unsigned slot, unsigned device)
{
	uint64_t start = clock_now_ns();
	unsigned reaped;
	int r = slot_reap_until(region, start, &reaped);

	FUZZ_CHECK(r == 0);
	/* -EAGAIN: somebody is on his way for ever; the total is no lower for that. */
	r = ledger_settle(region->file, device);
	FUZZ_CHECK(r == 0 || r == -EAGAIN);
	ledger_audit(region->file, device);
	FUZZ_CHECK(ledger_used_units(region->file, device) == UINT32_MAX ||
		   ledger_used_units(region->file, device) >= held_by_all(device));
	if (ledger_charge(region->file, slot, device, 10, LIMIT) == 0) {
		FUZZ_CHECK(held_by_all(device) <= LIMIT);
		ledger_note(region->file, slot, device, CHARGE_PLAIN, 10 * REGION_UNIT_BYTES);
		ledger_uncharge(region->file, slot, device, 10);
	}
	FUZZ_CHECK(clock_now_ns() - start < CALL_NS);
}

static void live(const uint8_t *bytes, size_t size)
{
	struct region region = REGION_NULL;
	uint64_t start = clock_now_ns();
	unsigned slot, device;
	int r = region_open(path, &region);

	FUZZ_CHECK(r >= 0 && r <= REGION_E_VERSION);
	if (r != 0)
		return;
	r = slot_claim(&region, &slot);
	FUZZ_CHECK(r == 0 || r == SLOT_E_FULL);
	if (r == 0) {
		FUZZ_CHECK(slot >= LIVING && slot < REGION_SLOTS);
		r = region_device(&region, DEVICE, &device);
		FUZZ_CHECK(r <= 0);
		FUZZ_CHECK(clock_now_ns() - start < CALL_NS);
	}
	if (r == 0) {
		FUZZ_CHECK(device < REGION_DEVICES);
		use(&region, slot, device);
		lie(bytes, size, true);
		use(&region, slot, device);
	}
	region_close(&region);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (!right)
		make_region();
	memcpy(lying, right, sizeof(*lying));
	lie(bytes, size, false);
	live(bytes, size);
	FUZZ_CHECK(snapshot_read(path, &snapshot) >= 0);
	return 0;
}
