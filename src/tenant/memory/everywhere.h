/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory, which may come to lie on any device that the process sees: by a kernel that touches it, by a
 * prefetch, by advice. It is charged on each of them from the beginning (docs/decisions/0009-managed-memory.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

struct charge;
struct device;

/* Charges the other devices, too; false where it does not fit on one of them: nothing has changed then. */
bool everywhere_charge(const struct charge *charge) MUST_CHECK;
void everywhere_give_back(const struct device *own, uint64_t bytes);

/* Before the device's quota leaves 0, and when it has. */
void everywhere_quota_comes(struct device *device);
void everywhere_quota_came(struct device *device);

/*
 * Whether the device is one of those, and what is there fits. One that the slice has no memory of is charged nothing: no context
 * fits there, and nothing must be sent there.
 */
bool everywhere_may_lie_on(CUdevice ordinal);

/*
 * Whether a device of the process has a quota or can be given one while it runs, so that memory that may lie anywhere must be charged from
 * the beginning.
 */
bool everywhere_is_bounded(void);

/* For a child of fork(). */
void everywhere_reset_after_fork(void);
