/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is closed within the free is a descriptor that alone keeps created memory: by a plain
 * close(), which changes no books. Included once.
 */
#pragma once

#include "tests/hostile/descriptors.h"
#include "tests/hostile/within_free.h"

static _Atomic int kept = -1;

/* The block that is to be freed, and as much that `kept` keeps. False where the quota is full. */
static bool take_both(CUdeviceptr *ret_block)
{
	int other;

	if (!descriptors_create_kept(GIB, &other))
		return false;
	if (!take_kept(ret_block)) {
		close(other);
		return false;
	}
	kept = other;
	return true;
}

static void prepare(void)
{
}

static void act_within(void)
{
	if (kept >= 0)
		close(kept);
	kept = -1;
}

static void act_afterwards(void)
{
}
