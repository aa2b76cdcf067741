/* SPDX-License-Identifier: Apache-2.0 */
/* A process that lives in a slice: it has a slot, as one with the library does. */
#pragma once

#include "region/slot.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

static inline int living_body(int fd, void *region_file)
{
	struct region region = REGION_NULL;
	unsigned slot;

	if (region_open(region_file, &region) != 0 || slot_claim(&region, &slot) != 0)
		return 1;
	region_drop_fd(&region);
	child_say(fd, slot);
	child_hear(fd);
	return 0;
}

/* It has its slot, and lives until it is killed. */
static inline struct child living_start(const char *region_file)
{
	struct child c = child_start(living_body, (void *)region_file);

	assert_int_not_equal(child_hear(c.fd), UINT64_MAX);
	return c;
}
