/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU in mode mig can be cut: the profiles that the configuration allows of those that the driver has. */
#pragma once

#include "gpu/inventory.h"
#include "gpu/partition.h"
#include "plugin/config/config.h"
#include "policy/mig.h"

#define CUTS_PROFILES 24 /* of one GPU */

/* All is zero at the start. */
struct cuts {
	struct mig_profile profiles[CUTS_PROFILES];
	unsigned count, most; /* instances of one kind */
};

void cuts_read(const struct config *config, const struct inventory_device *device,
	const struct partition_profiles *all, struct cuts *cuts);
