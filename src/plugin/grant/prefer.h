/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the free slices a container had best be given, where the kubelet asks. */
#pragma once

#include <stddef.h>

#include "base/bits.h"
#include "gpu/inventory.h"
#include "policy/topology.h"

struct prefer_request {
	const struct inventory *devices;
	const struct topology *topology; /* of these */
	char *const *free_ids, *const *must_ids;
	size_t free_count, must_count, wanted;
};

/*
 * Of the IDs that are free those that lie on the slot's devices, in its order and of each device the lowest; those that must
 * be in it take the place of others of their device. -ENODATA where there are not as many. ret_ids has a place for each that
 * is wanted; they are the caller's texts.
 */
int prefer_reserved(
	const char *slot, const struct prefer_request *request, const char **ret_ids) MUST_CHECK;

/*
 * The same where no reservation says the devices: the lowest of each of those devices that lie best together, the ones
 * with most free slices first among equals. -ENODATA also where so many devices have none.
 */
int prefer_nearest(const struct prefer_request *request, const char **ret_ids) MUST_CHECK;
