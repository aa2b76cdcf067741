/* SPDX-License-Identifier: Apache-2.0 */
/* The PID by which the driver lists this process. */
#define LOG_TOPIC LOG_LEDGER
#include "tenant/slice/own_pid.h"

#include <errno.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/scratch.h"
#include "tenant/slice/nvml.h"

/* Less than this is no context on any card that we know. */
#define CONTEXT_MIN_BYTES UINT64_C(0x1000000)
/* A context takes so much that is shown for no process: 5.6 MiB (H200), and what cuInit took. */
#define UNSHOWN_MAX_BYTES UINT64_C(0x1000000)
/* Below the ledger by more than a free under way explains, this often in a row: another process's figure. */
#define FAR_BYTES UINT64_C(0x4000000)
#define FAR_MOST  3

static struct {
	struct lock lock; /* only ever tried: the second thread leaves it to the first */
	const struct device *device;
	unsigned before[NVML_ROWS];
	unsigned before_count;
	uint64_t before_bytes; /* in use on the device */
	_Atomic unsigned found_pid;
	_Atomic bool
		is_unknown; /* our own PID is another process's in the list, or was found wrong */
	_Atomic unsigned far_count;
} own;

unsigned own_pid(void)
{
	/* relaxed: a PID seen late is no figure for a moment */
	unsigned pid = atomic_load_explicit(&own.found_pid, memory_order_relaxed);

	if (pid || atomic_load_explicit(&own.is_unknown, memory_order_relaxed))
		return pid;
	return (unsigned)getpid();
}

static _Atomic uint64_t *flag_of(const struct device *device)
{
	return &state.region.file->own.devices[device->entry].lists_namespaces;
}

bool own_pid_is_certain(const struct device *device)
{
	/* relaxed: a flag seen late costs a question */
	return atomic_load_explicit(flag_of(device), memory_order_relaxed);
}

void own_pid_is_confirmed(const struct device *device)
{
	/* relaxed: as above */
	if (!atomic_load_explicit(flag_of(device), memory_order_relaxed) &&
		own_pid() == (unsigned)getpid())
		atomic_store_explicit(flag_of(device), 1, memory_order_relaxed);
}

static bool was_listed(unsigned pid)
{
	for (unsigned i = 0; i < own.before_count; i++)
		if (own.before[i] == pid)
			return true;
	return false;
}

void own_pid_before_context(const struct device *device)
{
	int saved_errno = errno;
	uint64_t used;

	/* relaxed: found once, by one thread */
	if (atomic_load_explicit(&own.found_pid, memory_order_relaxed) || !lock_try(&own.lock))
		return;
	SCRATCH_READY(struct process_rows, rows);
	own.device = NULL;
	if (rows && nvml_usage(device->uuid, rows, &used) == 0) {
		own.device = device;
		own.before_count = rows->count;
		own.before_bytes = used;
		for (unsigned i = 0; i < rows->count; i++)
			own.before[i] = rows->at[i].pid;
		/* We have no context there yet. relaxed: as above */
		if (was_listed((unsigned)getpid()))
			atomic_store_explicit(&own.is_unknown, true, memory_order_relaxed);
	}
	lock_leave(&own.lock);
	errno = saved_errno;
}

/* Whether a process that is new in the list shows what our context took. */
static bool is_like_ours(uint64_t shown, uint64_t grown, uint64_t context_bytes)
{
	if (shown == NVML_VALUE_NOT_AVAILABLE || shown < CONTEXT_MIN_BYTES)
		return false;
	return round_up_u64(shown, REGION_UNIT_BYTES) == context_bytes ||
	       (grown >= shown && grown - shown <= UNSHOWN_MAX_BYTES);
}

static void keep(unsigned pid)
{
	/* relaxed: see own_pid(); HAMi's monitor reads without order */
	atomic_store_explicit(&own.found_pid, pid, memory_order_relaxed);
	if (pid == (unsigned)getpid())
		return;
	atomic_store_explicit(&state.region.file->hami.slots[state.slot].host_pid, (int32_t)pid,
		memory_order_relaxed);
	log_debug("the driver lists this process by another PID than its own", U64("pid", pid));
}

static void find(const struct process_rows *rows, uint64_t grown, uint64_t context_bytes)
{
	unsigned candidate = 0, candidates = 0, newcomers = 0;

	for (unsigned i = 0; i < rows->count; i++) {
		if (was_listed(rows->at[i].pid))
			continue;
		if (rows->at[i].pid == (unsigned)getpid()) {
			keep(rows->at[i].pid);
			return;
		}
		/*
		 * Another process that began meanwhile may be the one that looks like ours, where ours has
		 * more than a context already.
		 */
		newcomers += rows->at[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE ||
			     rows->at[i].usedGpuMemory >= CONTEXT_MIN_BYTES;
		if (!is_like_ours(rows->at[i].usedGpuMemory, grown, context_bytes))
			continue;
		candidate = rows->at[i].pid;
		candidates++;
	}
	if (candidates == 1 && newcomers == 1)
		keep(candidate);
}

void own_pid_after_context(const struct device *device, uint64_t context_bytes)
{
	int saved_errno = errno;
	uint64_t used;

	if (!lock_try(&own.lock))
		return;
	SCRATCH_READY(struct process_rows, rows);
	if (own.device == device && rows && nvml_usage(device->uuid, rows, &used) == 0)
		find(rows, used > own.before_bytes ? used - own.before_bytes : 0, context_bytes);
	own.device = NULL;
	lock_leave(&own.lock);
	errno = saved_errno;
}

static bool is_credible(uint64_t shown_bytes, uint64_t known_bytes)
{
	/* relaxed: counts of seldom things; two threads at once may count one for both */
	unsigned pid = atomic_load_explicit(&own.found_pid, memory_order_relaxed);

	if (!pid || pid == (unsigned)getpid())
		return true;
	if (shown_bytes + FAR_BYTES >= known_bytes) {
		atomic_store_explicit(&own.far_count, 0, memory_order_relaxed);
		return true;
	}
	if (atomic_fetch_add_explicit(&own.far_count, 1, memory_order_relaxed) + 1 >= FAR_MOST) {
		atomic_store_explicit(&own.is_unknown, true, memory_order_relaxed);
		atomic_store_explicit(&own.found_pid, 0, memory_order_relaxed);
		atomic_store_explicit(&state.region.file->hami.slots[state.slot].host_pid, 0,
			memory_order_relaxed);
	}
	return false;
}

int own_pid_memory_bytes(const char *uuid, uint64_t known_bytes, uint64_t *ret_bytes)
{
	unsigned pid = own_pid();
	SCRATCH_READY(struct process_rows, rows);
	int r = rows ? nvml_processes(uuid, rows) : -ENOMEM;

	if (r < 0)
		return r;
	for (unsigned i = 0; pid && i < rows->count; i++) {
		const nvmlProcessInfo_t *row = &rows->at[i];

		if (row->pid != pid || row->usedGpuMemory == NVML_VALUE_NOT_AVAILABLE)
			continue;
		if (!is_credible(row->usedGpuMemory, known_bytes))
			return -ENOENT;
		*ret_bytes = row->usedGpuMemory;
		return 0;
	}
	return -ENOENT;
}

void own_pid_reset_after_fork(void)
{
	own.lock = (struct lock)LOCK_INIT;
	own.device = NULL;
	own.found_pid = 0;
	own.is_unknown = false;
	own.far_count = 0;
}
