/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a free gave memory back to the device. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/watch.h"

#include "base/log.h"
#include "base/scratch.h"
#include "region/evict.h"
#include "region/ledger.h"
#include "region/shared.h"
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

/* What has changed so far, with what pools have given back by themselves, and whether code, that a load or unload names nowhere, comes or goes. */
static void read_changes(struct watch *watch)
{
	parts_collect(watch->device);
	watch->traffic = charge_traffic();
	watch->code = charge_code_since(watch->device);
	watch->changes = ledger_changes(state.region.file, watch->device->entry);
}

/*
 * Free memory rises for another reason, too, which can be undone when it was looked at: managed memory goes to the host, or a process is
 * checkpointed. Nothing is believed then.
 */
void watch_begin(struct device *device, struct watch *ret_watch)
{
	bool stays;

	/* What a process that has ended had may still be in the books. */
	if (!evict_stays(&state.region, device->entry))
		charge_reap(device);
	ret_watch->device = device;
	read_changes(ret_watch);
	stays = evict_stays(&state.region, device->entry);
	ret_watch->others_bytes = others_bytes(device);
	ret_watch->bytes = stays ? free_bytes_of(device) : 0;
}

bool watch_has_risen(const struct watch *before, uint64_t bytes)
{
	struct watch after = {.device = before->device};
	uint64_t again;
	bool was_alone;

	/* For others, whom our books tell of it only when we have looked. It is the one change that is ours. */
	ledger_count_change(state.region.file, before->device->entry);
	after.bytes = free_bytes_of(before->device);
	/* All looks at what is free lie between both at the changes, and others' in between: another free is seen, and one that is undone. */
	after.others_bytes = others_bytes(before->device);
	again = free_bytes_of(before->device);
	if (again < after.bytes)
		after.bytes = again;
	/* Who has died since, and what descriptors alone kept and are closed, is found now, and is a change. */
	charge_reap(before->device);
	read_changes(&after);
	was_alone = before->traffic == after.traffic && (uint32_t)after.traffic == 1 &&
		    before->code == after.code && (uint32_t)after.code == 0 &&
		    before->changes + 1 == after.changes &&
		    before->others_bytes <= after.others_bytes && after.others_bytes != UINT64_MAX;
	/* What descriptors alone keep may be gone, and its mark stand elsewhere. */
	was_alone &= shared_left_bytes(&state.region, before->device->entry) < bytes;
	if (was_alone && before->bytes && after.bytes >= before->bytes + bytes)
		return true;
	log_info("freed memory may be kept by a descriptor: charged until the process ends");
	return false;
}
