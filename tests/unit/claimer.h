/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with slots, for tests: a child that claims one, and how a slot is seen when its owner has ended. */
#pragma once

#include <sys/mman.h>

#include "region/ledger.h"
#include "region/slot.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

/* What a child is to do when it has its slot and holds 10 units of device 0. */
enum what_then { WAIT, EXIT, EXEC, CLOSE_AND_WAIT, UNMAP_AND_WAIT };

struct order {
	const char *path;
	enum what_then what_then;
	unsigned slots;
};

/* Takes away what others know by that this process lives. */
static inline void unmap(struct region *region)
{
	region_drop_fd(region);
	munmap(region->file, sizeof(*region->file));
	if (region->token_page)
		token_drop(region->token_page);
}

/* Says the number of its last slot, or UINT64_MAX; then obeys. */
static inline int claim(int fd, void *argument)
{
	struct order *order = argument;
	struct region region = REGION_NULL;
	unsigned slot = 0;

	if (region_open(order->path, &region) != 0)
		return 1;
	for (unsigned i = 0; i < order->slots; i++)
		if (slot_claim(&region, &slot) != 0)
			return 2;
	region_drop_fd(&region);
	if (ledger_charge(region.file, slot, 0, 10, 1000000) != 0)
		return 3;
	child_say(fd, slot);
	if (order->what_then == EXEC) {
		child_hear(fd);
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
		return 4;
	}
	if (order->what_then == CLOSE_AND_WAIT) {
		region_close(&region);
		child_say(fd, 1);
	}
	if (order->what_then == UNMAP_AND_WAIT) {
		unmap(&region);
		child_say(fd, 1);
	}
	if (order->what_then != EXIT)
		child_hear(fd);
	return 0;
}

static inline struct child start_claimer(const struct scratch *s, enum what_then what_then)
{
	struct order order = {.path = s->file, .what_then = what_then, .slots = 1};

	return child_start(claim, &order);
}

static inline unsigned reap(struct region *region)
{
	unsigned reaped = 9999;

	assert_int_equal(slot_reap(region, &reaped), 0);
	return reaped;
}

static inline uint32_t slot_state(const struct region *region, unsigned slot)
{
	return atomic_load(&region->file->own.slots[slot].state);
}

static inline void assert_free(struct region *region)
{
	assert_int_equal(slot_state(region, 0), SLOT_FREE);
	assert_int_equal(ledger_used_units(region->file, 0), 0);
	assert_int_equal(ledger_held_units(region->file, 0, 0), 0);
	assert_int_equal(atomic_load(&region->file->hami.slots[0].pid), 0);
	assert_int_equal(atomic_load(&region->file->hami.slots[0].status), HAMI_EXITED);
	assert_int_equal(reap(region), 0);
}

static inline void assert_given_back(struct region *region)
{
	assert_int_equal(reap(region), 1);
	assert_free(region);
}
