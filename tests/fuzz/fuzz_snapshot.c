/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region that lies: the input says how long the file is and which bytes of a right region are
 * others. A snapshot of it is refused or stays within its bounds.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "region/region.h"
#include "region/snapshot.h"
#include "tests/fuzz/fuzz.h"

#define LIVING 3 /* slots whose lock somebody holds */

static struct region_file right, lying;
static struct snapshot snapshot;
static char path[64];
static int fd = -1;

static void make_region(void)
{
	int other;

	right.hami.magic = HAMI_MAGIC;
	right.hami.major = HAMI_MAJOR;
	right.own.magic = REGION_MAGIC;
	right.own.version = REGION_VERSION;
	right.own.size_bytes = sizeof(right);
	right.own.device_count = 2;
	right.own.slot_high = LIVING + 1;
	memcpy(right.hami.uuids[0], "GPU-a", 6);
	memcpy(right.hami.uuids[1], "GPU-b", 6);
	for (int i = 0; i <= LIVING; i++) {
		right.own.slots[i].state = SLOT_LIVE;
		right.own.slots[i].held[0] = UINT64_C(100) << 32;
	}
	fd = memfd_create("region", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDWR | O_CLOEXEC);
	for (int i = 0; i < LIVING; i++)
		FUZZ_CHECK(file_lock_byte(other, REGION_LOCK_SLOTS + i) == 0);
}

/* Where a byte of the input points to: the telling parts of the file, and any. */
static size_t place(uint8_t part, unsigned offset)
{
	switch (part % 4) {
	case 0:
		return offsetof(struct region_file, own) + offset % 1088;
	case 1:
		return offsetof(struct region_file, own.slots) +
		       offset % (4 * sizeof(struct region_slot));
	case 2:
		return offset % offsetof(struct region_file, hami.slots);
	default:
		return offset * 61u % sizeof(right);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t length = sizeof(lying);
	uint64_t used = 0, limit = 0;
	int r;

	if (fd < 0)
		make_region();
	memcpy(&lying, &right, sizeof(lying));
	if (size > 3 && bytes[0] % 4 == 1)
		length = (bytes[1] | bytes[2] << 8) * UINT64_C(61) % (sizeof(lying) + 1);
	/* part, offset, how many, with what */
	for (size_t at = 3; at + 5 <= size; at += 5) {
		size_t to = place(bytes[at], (unsigned)(bytes[at + 1] | bytes[at + 2] << 8));
		size_t count = bytes[at + 3] % 128;

		if (count > sizeof(lying) - to)
			count = sizeof(lying) - to;
		memset((char *)&lying + to, bytes[at + 4], count);
	}
	FUZZ_CHECK(ftruncate(fd, (off_t)length) == 0);
	FUZZ_CHECK(pwrite(fd, &lying, length, 0) == (ssize_t)length);

	r = snapshot_read(path, &snapshot);
	FUZZ_CHECK(r >= 0 && r <= REGION_E_VERSION);
	if (r == 0) {
		FUZZ_CHECK(snapshot.device_count <= REGION_DEVICES);
		FUZZ_CHECK(snapshot.process_count <= LIVING);
		for (unsigned d = 0; d < snapshot.device_count; d++)
			FUZZ_CHECK(memchr(snapshot.devices[d].uuid, 0, REGION_UUID_BYTES));
		for (unsigned p = 0; p < snapshot.process_count; p++)
			FUZZ_CHECK(memchr(snapshot.processes[p].command, 0, 17));
	}
	r = snapshot_device_use(path, "GPU-a", &used, &limit);
	FUZZ_CHECK(r >= 0 && r <= REGION_E_VERSION);
	FUZZ_CHECK(used <= (uint64_t)(LIVING + REGION_SHARED) * UINT32_MAX * REGION_UNIT_BYTES);
	return 0;
}
