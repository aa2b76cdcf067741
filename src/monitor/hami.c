/* SPDX-License-Identifier: Apache-2.0 */
/* The region of a container as HAMi's library writes it. */
#include "monitor/hami.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAGIC	  19920718
#define PROCESSES 1024
#define MAJOR	  1

/* Offsets in bytes; numbers are little-endian. What one device has of a process stands behind that of the one before. */
struct layout {
	size_t bytes, major; /* 0: it has none */
	size_t device_count, uuids, limits, processes, process_bytes, process_count;
	size_t is_limited, recent_launches, priority, last_launch_s; /* 0: it is not told */
	/* within a process */
	size_t use, use_bytes, busy, busy_bytes, status;
};

static const struct layout layouts[] = {
	{.bytes = 2008952,
		.major = 4,
		.device_count = 56,
		.uuids = 64,
		.limits = 1600,
		.processes = 1856,
		.process_bytes = 1960,
		.process_count = 2008896,
		.is_limited = 2008900,
		.recent_launches = 2008904,
		.priority = 2008908,
		.last_launch_s = 2008912,
		.use = 8,
		.use_bytes = 64,
		.busy = 1160,
		.busy_bytes = 48,
		.status = 1928},
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
enum { USE_CONTEXT, USE_MODULE, USE_BUFFER, USE_TOTAL = 4 };
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
		add(&d->used_bytes, word(use + 8 * USE_TOTAL));
		add(&d->busy_percent, word(process + l->busy + i * l->busy_bytes + 8 * BUSY_WORD));
	}
}

static unsigned clamp(int64_t value, unsigned most)
{
	return value < 0 ? 0 : value > (int64_t)most ? most : (unsigned)value;
}

static void read_all(const struct layout *l, const uint8_t *file, struct hami_figures *to)
{
	unsigned processes = clamp(half(file + l->process_count), PROCESSES);

	to->device_count = word(file + l->device_count) > HAMI_DEVICES
				   ? HAMI_DEVICES
				   : (unsigned)word(file + l->device_count);
	for (unsigned i = 0; i < to->device_count; i++) {
		memcpy(to->devices[i].uuid, file + l->uuids + i * (size_t)HAMI_UUID_BYTES,
			HAMI_UUID_BYTES - 1);
		to->devices[i].limit_bytes = word(file + l->limits + i * 8);
	}
	for (unsigned i = 0; i < processes; i++)
		read_process(l, file + l->processes + i * l->process_bytes, to);
	to->recent_launches = half(file + l->recent_launches);
	to->is_limited = half(file + l->is_limited);
	to->priority = half(file + l->priority);
	to->last_launch_s = l->last_launch_s ? word(file + l->last_launch_s) : 0;
}

int hami_read(int fd, struct hami_figures *ret_figures)
{
	_cleanup_free_ uint8_t *file = NULL;
	const struct layout *l;
	ssize_t got;
	int r = find_layout(fd, &l);

	if (r)
		return r;
	file = malloc(l->bytes);
	if (!file)
		return -ENOMEM;
	got = pread(fd, file, l->bytes, 0);
	if (got < 0)
		return -errno;
	if ((size_t)got != l->bytes || half(file) != MAGIC ||
		(l->major && half(file + l->major) != MAJOR))
		return HAMI_E_FOREIGN;
	memset(ret_figures, 0, sizeof(*ret_figures));
	read_all(l, file, ret_figures);
	return 0;
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
