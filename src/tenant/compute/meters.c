/* SPDX-License-Identifier: Apache-2.0 */
/* The meters, and how each is made ready. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/meters.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

struct meter meters[REGION_DEVICES];

/* A slice without a name is known by its region. */
static void slice_name(char ret_name[TURN_NAME_BYTES])
{
	const char *name = quota_slice_name();

	if (*name)
		snprintf(ret_name, TURN_NAME_BYTES, "%s", name);
	else
		snprintf(ret_name, TURN_NAME_BYTES, "region-%llx-%llx",
			(unsigned long long)state.region.device,
			(unsigned long long)state.region.inode);
}

static void open_turns(struct meter *m, uint64_t now_ns)
{
	const char *path = quota_turns_path();
	char name[TURN_NAME_BYTES];
	int r;

	if (!path)
		return;
	slice_name(name);
	r = turn_open(&m->turn, path, m->device->uuid, name, state.slot, now_ns);
	m->has_turns = r == 0;
	if (r < 0)
		log_warn("no turns can be taken on a device, so time slices of others are charged",
			STR("device", m->device->uuid), STR("folder", path),
			STR("why", strerror(-r)));
}

struct meter *meter_of(struct device *device)
{
	struct meter *m = &meters[device->entry];

	/* pairs with the release below */
	if (LIKELY(atomic_load_explicit(&m->is_ready, memory_order_acquire)))
		return m;
	LOCK_SCOPE(&m->lock);
	if (!m->is_ready) {
		m->device = device;
		m->books = &state.region.file->own.compute[device->entry];
		m->overlap_permille = 1000;
		m->counted_permille = 1000;
		open_turns(m, clock_now_ns());
		FAULT("meter: being made");
		/* pairs with the acquire above */
		atomic_store_explicit(&m->is_ready, true, memory_order_release);
	}
	return m;
}
