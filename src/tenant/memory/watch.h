/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the end of memory that something else may keep, like a network card that has it registered, gave it back to
 * the device. Where the device has no more free afterwards, or another thread is in the way, the charge stays for as
 * long as the process.
 */
#pragma once

#include "tenant/memory/charge.h"

struct watch {
	struct device *device;
	uint64_t bytes;		/* free; 0: not known */
	uint64_t traffic, code; /* of this process: charge_code_since() */
	uint64_t changes;	/* of the slice's books */
	uint64_t others_bytes;	/* what NVML shows for other processes; UINT64_MAX: not known */
};

/* Before the driver is asked, in a CHARGE_SCOPE() with the rest. */
void watch_begin(struct device *device, struct watch *ret_watch);
/* After it: false where it is not certain. */
bool watch_has_risen(const struct watch *watch, uint64_t bytes);
