/* SPDX-License-Identifier: Apache-2.0 */
/* The list of slices that the kubelet is given: each device as so many, "<UUID>-<i>". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/inventory.h"

struct slices {
	const struct inventory *devices;
	unsigned split_count;
	uint64_t unhealthy;	 /* bit i: the inventory's i-th device */
	int numa[INVENTORY_MAX]; /* of each; below 0: it is not told */
};

/*
 * The message ListAndWatchResponse of these devices, in their order, and of each its slices in theirs: the
 * same devices make the same bytes. The caller frees it. -ENOMEM.
 */
int slices_pack(const struct slices *slices, uint8_t **ret_message, size_t *ret_bytes) MUST_CHECK;
