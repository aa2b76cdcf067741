/* SPDX-License-Identifier: Apache-2.0 */
/* The region of a container as HAMi's library writes it. */
#include "monitor/hami.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "region/layout.h"

/* Offsets in bytes; numbers are little-endian. What one device has of a process stands behind that of the one before. */
struct layout {
	size_t bytes, major; /* 0: it has none */
	size_t device_count, uuids, limits, processes, process_bytes, process_count;
	size_t is_limited, recent_launches, priority, last_launch_s; /* 0: it is not told */
	/* within a process */
	size_t use, use_bytes, busy, busy_bytes, status;
};

static const struct layout layouts[] = {
	{.bytes = sizeof(struct hami_region),
		.major = offsetof(struct hami_region, major),
		.device_count = offsetof(struct hami_region, device_count),
		.uuids = offsetof(struct hami_region, uuids),
		.limits = offsetof(struct hami_region, limit_bytes),
		.processes = offsetof(struct hami_region, slots),
		.process_bytes = sizeof(struct hami_slot),
		.process_count = offsetof(struct hami_region, slot_count),
		.is_limited = offsetof(struct hami_region, utilization_switch),
		.recent_launches = offsetof(struct hami_region, recent_kernel),
		.priority = offsetof(struct hami_region, priority),
		.last_launch_s = offsetof(struct hami_region, last_kernel_s),
		.use = offsetof(struct hami_slot, used),
		.use_bytes = sizeof(struct hami_use),
		.busy = offsetof(struct hami_slot, utilization),
		.busy_bytes = sizeof(struct hami_utilization),
		.status = offsetof(struct hami_slot, status)},
	{.bytes = 1197896,
		.device_count = 48,
		.uuids = 56,
		.limits = 1592,
		.processes = 1848,
		.process_bytes = 1168,
		.process_count = 1197880,
		.is_limited = 1197884,
		.recent_launches = 1197888,
		.priority = 1197892,
		.use = 8,
		.use_bytes = 40,
		.busy = 776,
		.busy_bytes = 24,
		.status = 1160},
};

/* Of a process and a device: context, module, buffer, offset, total; and decoder, encoder, multiprocessors. */
enum { USE_CONTEXT, USE_MODULE, USE_BUFFER, USE_OFFSET, USE_TOTAL };
#define BUSY_WORD 2

static uint64_t word(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static int32_t half(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* What a process says may be anything: the sum ends at the largest number. */
static void add(uint64_t *sum, uint64_t value)
{
	*sum = *sum + value < value ? UINT64_MAX : *sum + value;
}

static int find_layout(int fd, const struct layout **ret_layout)
{
	struct stat s;

	if (fstat(fd, &s) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (s.st_size >= (off_t)layouts[i].bytes) {
			*ret_layout = &layouts[i];
			return 0;
		}
	return HAMI_E_FOREIGN;
}

static void read_process(const struct layout *l, const uint8_t *process, struct hami_figures *to)
{
	if (half(process + l->status) == 0)
		return;
	to->process_count++;
	for (unsigned i = 0; i < to->device_count; i++) {
		const uint8_t *use = process + l->use + i * l->use_bytes;
		struct hami_device *d = &to->devices[i];

		add(&d->context_bytes, word(use + 8 * USE_CONTEXT));
		add(&d->module_bytes, word(use + 8 * USE_MODULE));
		add(&d->buffer_bytes, word(use + 8 * USE_BUFFER));
		add(&d->offset_bytes, word(use + 8 * USE_OFFSET));
		add(&d->used_bytes, word(use + 8 * USE_TOTAL));
		add(&d->busy_percent, word(process + l->busy + i * l->busy_bytes + 8 * BUSY_WORD));
	}
}

static unsigned clamp(int64_t value, unsigned most)
{
	return value < 0 ? 0 : value > (int64_t)most ? most : (unsigned)value;
}

static void read_devices(const struct layout *l, const uint8_t *head, struct hami_figures *to)
{
	to->device_count = word(head + l->device_count) > REGION_DEVICES
				   ? REGION_DEVICES
				   : (unsigned)word(head + l->device_count);
	for (unsigned i = 0; i < to->device_count; i++) {
		memcpy(to->devices[i].uuid, head + l->uuids + i * (size_t)REGION_UUID_BYTES,
			REGION_UUID_BYTES - 1);
		to->devices[i].limit_bytes = word(head + l->limits + i * 8);
	}
}

static void read_tail(const struct layout *l, const uint8_t *tail, struct hami_figures *to)
{
	tail -= l->process_count;
	to->recent_launches = half(tail + l->recent_launches);
	to->is_limited = half(tail + l->is_limited);
	to->priority = half(tail + l->priority);
	to->last_launch_s = l->last_launch_s ? word(tail + l->last_launch_s) : 0;
}

/* Where the file has become shorter, it is none of ours. */
static int read_part(int fd, uint8_t *to, size_t bytes, size_t at)
{
	ssize_t got = pread(fd, to, bytes, (off_t)at);

	return got < 0 ? -errno : (size_t)got == bytes ? 0 : HAMI_E_FOREIGN;
}

/* Most regions have a few processes of a thousand: no others are read. */
static int read_processes(int fd, const struct layout *l, unsigned count, struct hami_figures *to)
{
	_cleanup_free_ uint8_t *process = malloc(l->process_bytes);
	int r = process ? 0 : -ENOMEM;

	for (unsigned i = 0; i < count && !r; i++) {
		r = read_part(fd, process, l->process_bytes, l->processes + i * l->process_bytes);
		if (!r)
			read_process(l, process, to);
	}
	return r;
}

int hami_read(int fd, struct hami_figures *ret_figures)
{
	uint8_t head[offsetof(struct hami_region, slots)],
		tail[sizeof(struct hami_region) - offsetof(struct hami_region, slot_count)];
	const struct layout *l;
	int r = find_layout(fd, &l);

	if (!r)
		r = read_part(fd, head, l->processes, 0);
	if (!r)
		r = read_part(fd, tail, l->bytes - l->process_count, l->process_count);
	if (r)
		return r;
	if (half(head) != HAMI_MAGIC || (l->major && half(head + l->major) != HAMI_MAJOR))
		return HAMI_E_FOREIGN;
	memset(ret_figures, 0, sizeof(*ret_figures));
	read_devices(l, head, ret_figures);
	read_tail(l, tail, ret_figures);
	return read_processes(fd, l, clamp(half(tail), REGION_SLOTS), ret_figures);
}

static int write_half(int fd, size_t at, int32_t value)
{
	int32_t there;
	ssize_t r = pread(fd, &there, sizeof(there), (off_t)at);

	if (r == sizeof(there) && there == value)
		return 0;
	if (r == sizeof(there))
		r = pwrite(fd, &value, sizeof(value), (off_t)at);
	return r < 0 ? -errno : r == sizeof(value) ? 0 : HAMI_E_FOREIGN;
}

int hami_write(int fd, int32_t recent_launches, int32_t is_limited)
{
	const struct layout *l;
	int r = find_layout(fd, &l);

	if (!r)
		r = write_half(fd, l->recent_launches, recent_launches);
	return r ? r : write_half(fd, l->is_limited, is_limited);
}
