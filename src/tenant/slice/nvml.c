/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenant library's own questions to NVML.
 *
 * They are rare: when a quota is given by index, once a slice and device to learn what a context takes,
 * and once a second what this process holds. NVML is loaded then if the program has not loaded it.
 */
#include "tenant/slice/nvml.h"

#include <errno.h>

#include "base/clock.h"
#include "tenant/driver/attach.h"

/* To look for the driver's reads the process's mappings, and loads a library to see whose it is. */
#define LOOK_NS UINT64_C(1000000000)

static uint64_t rest_until_ns; /* with the session's lock; after a look that found none */

/* Before the driver is there the next look may find what this one does not. */
static bool load(void)
{
	uint64_t now_ns = clock_now_ns();

	if (!attach_has_cuda)
		return attach_load_nvml();
	if (now_ns < rest_until_ns)
		return false;
	if (attach_load_nvml())
		return true;
	rest_until_ns = now_ns + LOOK_NS;
	return false;
}

/* Never ended: to end it after each question would cost its whole beginning each time. */
static struct nvml_session session = {.driver = &nvml, .load = load};

static _Atomic unsigned
	program_beginnings; /* in a child of fork() as in its parent: NVML's own count is, too */

void nvml_program_began(void)
{
	atomic_fetch_add(&program_beginnings, 1);
}

bool nvml_program_may_end(void)
{
	unsigned count = atomic_load(&program_beginnings);

	while (count && !atomic_compare_exchange_weak(&program_beginnings, &count, count - 1))
		;
	return count > 0;
}

/* What was begun before the driver was there may be another NVML than the driver's. */
static int begin(void)
{
	if (UNLIKELY(attach_nvml_is_early()))
		nvml_session_end(&session);
	return nvml_session_begin(&session);
}

/* Where it was ended beside us it is begun anew. */
static int find(const char *uuid, nvmlDevice_t *ret_device)
{
	int r = begin();

	if (r == 0 && nvml_session_is_lost(&session))
		r = begin();
	return r < 0 ? r : nvml_find_device(&nvml, uuid, ret_device);
}

int nvml_index_of(const char *uuid, unsigned *ret_index)
{
	int r = begin();

	return r < 0 ? r : nvml_find_index(&nvml, uuid, ret_index);
}

int nvml_processes(const char *uuid, struct process_rows *ret_rows)
{
	nvmlDevice_t device;
	int r = find(uuid, &device);

	return r < 0 ? r : nvml_list_processes(&nvml, device, LIST_COMPUTE, ret_rows);
}

int nvml_usage(const char *uuid, struct process_rows *ret_rows, uint64_t *ret_used_bytes)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;
	int r = find(uuid, &device);

	if (r == 0)
		r = nvml_list_processes(&nvml, device, LIST_COMPUTE, ret_rows);
	if (r == 0)
		r = nvml_read_memory(&nvml, device, &memory);
	if (r == 0)
		*ret_used_bytes = memory.used;
	return r;
}

int nvml_busy(const char *uuid, uint64_t since_us, struct busy_rows *ret_rows)
{
	nvmlDevice_t device;
	int r = find(uuid, &device);

	return r < 0 ? r : nvml_read_busy(&nvml, device, since_us, ret_rows);
}

bool nvml_is_begun(void)
{
	return nvml_session_is_begun(&session);
}

void nvml_reset_after_fork(void)
{
	nvml_session_reset_after_fork(&session);
	rest_until_ns = 0;
}
