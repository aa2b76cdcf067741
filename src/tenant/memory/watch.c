/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a free gave memory back to the device. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/watch.h"

#include "base/log.h"
#include "base/scratch.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/current.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"

static uint64_t free_bytes_of(const struct device *device)
{
	uint64_t since = current_since();
	struct device *current;
	size_t free = 0, total;

	return state_current_device(&current) == CUDA_SUCCESS && current == device &&
			       cuda.cuMemGetInfo_v2 &&
			       cuda.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS &&
			       current_is_same(since)
		       ? free
		       : 0;
}

/*
 * What NVML shows for all other processes that it lists: one that frees is stopped before its books say so, or is of
 * another slice, whose books are elsewhere.
 */
static uint64_t others_bytes(const struct device *device)
{
	unsigned own = own_pid();
	SCRATCH_READY(struct process_rows, rows);
	uint64_t sum = 0;

	if (!own || !rows || nvml_processes(device->uuid, rows) != 0)
		return UINT64_MAX;
	for (unsigned i = 0; i < rows->count; i++) {
		if (rows->at[i].pid == own)
			continue;
		if (rows->at[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE)
			return UINT64_MAX;
		sum += rows->at[i].usedGpuMemory;
	}
	return sum;
}

/* What has changed so far, with what pools have given back by themselves. */
static void read_changes(struct watch *watch)
{
	parts_collect(watch->device);
	watch->traffic = charge_traffic();
	watch->changes = ledger_changes(state.region.file, watch->device->entry);
}

void watch_begin(struct device *device, struct watch *ret_watch)
{
	ret_watch->device = device;
	read_changes(ret_watch);
	ret_watch->others_bytes = others_bytes(device);
	ret_watch->bytes = free_bytes_of(device);
}

bool watch_has_risen(const struct watch *before, uint64_t bytes)
{
	struct watch after = {.device = before->device, .bytes = free_bytes_of(before->device)};
	bool was_alone;

	/* Both looks at what is free lie between both at the changes, and at others: another free in between is one. */
	after.others_bytes = others_bytes(before->device);
	read_changes(&after);
	was_alone = before->traffic == after.traffic && (uint32_t)after.traffic == 1 &&
		    before->changes == after.changes &&
		    before->others_bytes <= after.others_bytes && after.others_bytes != UINT64_MAX;
	if (was_alone && before->bytes && after.bytes >= before->bytes + bytes)
		return true;
	log_info("freed memory is kept by a descriptor: charged until the process ends");
	return false;
}
