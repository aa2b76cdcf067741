/* SPDX-License-Identifier: Apache-2.0 */
/* Whether devices have room for what is to come back to them, as NVML tells. */
#include "node/free_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/device_name.h"

#define MIB (UINT64_C(1) << 20)

/*
 * What no book has of a process on a device: the driver's own for it, and the part of its context that NVML
 * shows for no process. Measured on an H200: 8.8 MiB (3.3 and 5.5), and of an evicted 2,611 MiB the books had
 * 2,602.
 */
#define UNBOOKED_BYTES (10 * MIB)

/*
 * What is to be left beside that, 64 MiB in all for one process, where others are on the device: they go on taking
 * memory between the look and the end of the restore. Estimated; no figure is sure. Where nobody else is, there
 * will never be more room than now, and a slice that filled its device has to come back.
 */
#define SPARE_BYTES (54 * MIB)

#define LISTED_MAX  128 /* processes of a device; more are others in any case */

void free_memory_open(const char *library, struct free_memory *ret_memory)
{
	struct free_memory r = {
		.handle = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
	bool is_whole = r.handle != NULL;

#define X(symbol)                                                   \
	if (is_whole) {                                             \
		r.symbol = (symbol##_fn *)dlsym(r.handle, #symbol); \
		is_whole = r.symbol != NULL;                        \
	}
	FREE_MEMORY_FUNCTIONS(X)
#undef X
	if (is_whole && r.nvmlInit_v2() == NVML_SUCCESS) {
		*ret_memory = r;
		return;
	}
	if (r.handle)
		dlclose(r.handle);
	*ret_memory = (struct free_memory){.handle = NULL};
}

void free_memory_close(struct free_memory *memory)
{
	if (!memory->handle)
		return;
	memory->nvmlShutdown();
	dlclose(memory->handle);
	memory->handle = NULL;
}

static bool find(const struct free_memory *memory, const char *uuid, nvmlDevice_t *ret_device)
{
	char mig[sizeof("MIG-") + REGION_UUID_BYTES];

	if (memory->nvmlDeviceGetHandleByUUID(uuid, ret_device) == NVML_SUCCESS)
		return true;
	/* What CUDA calls GPU-... may be an instance, which NVML finds by its own name alone. */
	snprintf(mig, sizeof(mig), "MIG-%s", device_name_core(uuid));
	return memory->nvmlDeviceGetHandleByUUID(mig, ret_device) == NVML_SUCCESS;
}

static bool is_one(const struct evictees *all, unsigned pid)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->list[i].pid == (int)pid)
			return true;
	return false;
}

/* Whether somebody else is on the device; true where NVML does not tell. */
static bool has_others(
	const struct free_memory *memory, nvmlDevice_t device, const struct evictees *all)
{
	nvmlDeviceGetComputeRunningProcesses_v3_fn *const lists[] = {
		memory->nvmlDeviceGetComputeRunningProcesses_v3,
		memory->nvmlDeviceGetGraphicsRunningProcesses_v3};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		nvmlProcessInfo_t rows[LISTED_MAX];
		unsigned count = LISTED_MAX;

		if (lists[i](device, &count, rows) != NVML_SUCCESS)
			return true;
		for (unsigned k = 0; k < count && k < LISTED_MAX; k++)
			if (!is_one(all, rows[k].pid))
				return true;
	}
	return false;
}

/* What is to come back to one device. */
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
	char others[40] = "";

	if (load->count > 1)
		snprintf(others, sizeof(others), " and %u more", load->count - 1);
	return err_set(err, ENOSPC,
		"no room for process %d (%.16s)%s: device %.80s has %" PRIu64
		" MiB free, and %" PRIu64 " MiB are needed; end, evict or limit who holds it, and "
		"resume again",
		load->first->pid, load->first->command, others, uuid, free_bytes / MIB,
		(need + MIB - 1) / MIB);
}

static int check_device(const struct free_memory *memory, const struct evictees *all,
	const struct load *load, const char *uuid, struct err *err)
{
	nvmlMemory_t figures;
	nvmlDevice_t device;
	uint64_t need;

	if (!find(memory, uuid, &device) ||
		memory->nvmlDeviceGetMemoryInfo(device, &figures) != NVML_SUCCESS)
		return 0;
	need = load->bytes + load->count * UNBOOKED_BYTES;
	if (has_others(memory, device, all))
		need += SPARE_BYTES;
	return figures.free < need ? refuse(load, figures.free, need, uuid, err) : 0;
}

int free_memory_check(const struct free_memory *memory, const struct evictees *all,
	const struct evictee *one, const struct snapshot *seen, struct err *err)
{
	int r = 0;

	for (unsigned d = 0; memory->handle && r == 0 && d < seen->device_count; d++) {
		struct load load = {.count = 0};

		for (unsigned i = 0; i < all->count; i++)
			if (!one || one == &all->list[i])
				add(&load, &all->list[i], d);
		if (load.count)
			r = check_device(memory, all, &load, seen->devices[d].uuid, err);
	}
	return r;
}
