/* SPDX-License-Identifier: Apache-2.0 */
/* Whether devices have free memory for what is to come back to them, as NVML tells. */
#include "node/free_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

/*
 * The ledger lacks so much of a process on a device: the driver's own for it, and the part of its context that NVML
 * shows for no process. Measured on an H200: 8.8 MiB (3.3 and 5.5), and of an evicted 2,611 MiB the ledger had
 * 2,602.
 */
#define UNCHARGED_BYTES (10 * MIB)

/*
 * So much is left beside that, 64 MiB in all for one process, where other processes are on the device: they go on
 * taking memory between this check and the end of the restore. Estimated; no figure is sure. Where no other process
 * is, no more memory will ever be free than now, and a slice that filled its device has to come back.
 */
#define SPARE_BYTES (54 * MIB)

static bool is_one(const struct evictees *all, unsigned pid)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->list[i].pid == (int)pid)
			return true;
	return false;
}

/* Whether another process is on the device; true where NVML does not tell. */
static bool has_others(
	const struct nvml_driver *nvml, nvmlDevice_t device, const struct evictees *all)
{
	static const enum process_list lists[] = {LIST_COMPUTE, LIST_GRAPHICS};
	struct process_rows rows;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (nvml_list_processes(nvml, device, lists[i], &rows) < 0)
			return true;
		for (unsigned k = 0; k < rows.count; k++)
			if (!is_one(all, rows.at[k].pid))
				return true;
	}
	return false;
}

/* The memory that is to come back to one device. */
struct load {
	uint64_t bytes;
	unsigned count; /* of processes */
	const struct evictee *first;
};

static void add(struct load *load, const struct evictee *p, unsigned device)
{
	if (p->stage < STAGE_AWAY || p->bytes[device] == 0)
		return;
	load->bytes += p->bytes[device];
	if (load->count++ == 0)
		load->first = p;
}

static int refuse(const struct load *load, uint64_t free_bytes, uint64_t need, const char *uuid,
	struct err *err)
{
	char more[40] = "";

	if (load->count > 1)
		snprintf(more, sizeof(more), " and %u more", load->count - 1);
	return err_set(err, ENOSPC,
		"no free memory for process %d (%.16s)%s: device %.80s has %" PRIu64
		" MiB free, and %" PRIu64 " MiB are needed; end, evict or limit what uses it, and "
		"resume again",
		load->first->pid, load->first->command, more, uuid, free_bytes / MIB,
		(need + MIB - 1) / MIB);
}

static int check_device(const struct nvml_driver *nvml, const struct evictees *all,
	const struct load *load, const char *uuid, struct err *err)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;
	uint64_t need;

	if (nvml_find_device(nvml, uuid, &device) < 0 ||
		nvml_read_memory(nvml, device, &memory) < 0)
		return 0;
	need = load->bytes + load->count * UNCHARGED_BYTES;
	if (has_others(nvml, device, all))
		need += SPARE_BYTES;
	return memory.free < need ? refuse(load, memory.free, need, uuid, err) : 0;
}

int free_memory_check(const struct nvml_driver *nvml, const struct evictees *all,
	const struct evictee *one, const struct snapshot *seen, struct err *err)
{
	int r = 0;

	for (unsigned d = 0; nvml && r == 0 && d < seen->device_count; d++) {
		struct load load = {.count = 0};

		for (unsigned i = 0; i < all->count; i++)
			if (!one || one == &all->list[i])
				add(&load, &all->list[i], d);
		if (load.count)
			r = check_device(nvml, all, &load, seen->devices[d].uuid, err);
	}
	return r;
}
