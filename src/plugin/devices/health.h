/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices are fit to be handed out, by what NVML reports: XIDs that are a failure, memory errors that could not be
 * corrected, a device that is lost, a driver that is gone.
 *
 * One device's failure is that one's alone. A device that was lost, or whose driver was, is fit again when it is there
 * again; one that has reported a failure, when it was lost or its driver was restarted after that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/inventory.h"
#include "net/loop.h"

struct health;

struct health_request {
	const struct inventory *devices;
	const char *ignores,
		*heeds; /* texts of DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS */
	void (*changed)(void *context, uint64_t unhealthy); /* bit i: the inventory's i-th device */
	void *context;
};

/*
 * Begins; the request's texts and devices must live as long. *ret_health is NULL where nothing is to be checked. A thread
 * waits for the driver, and changed() comes from loop_run(). -errno.
 */
int health_start(struct loop *loop, const struct health_request *request,
	struct health **ret_health) MUST_CHECK;

/* Takes half a second at most. Accepts NULL. */
void health_stop(struct health *health);

/* Whether the XID is a failure of the device. Programs cause 13, 31, 43, 45, 68 and 109 by faults of their own. */
bool health_is_failure(const char *ignores, const char *heeds, uint64_t xid);
