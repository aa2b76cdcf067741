/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACTIVE_OOM_KILLER: where the owner of a slice lowers its quota below what is in use, and has asked
 * for it, the process that holds most ends itself (docs/decisions/0014-oom-killer.md).
 */
#pragma once

#include "tenant/slice/parts.h"

/*
 * Looks at all devices, at most every QUOTA_CHECK_NS, and may not return. Costs one load where the
 * option is off. Mode is STATE_OPEN; no lock of ours is held.
 */
void oom_look(void);

/* The same on the way of a charge (slice/parts.h). */
void oom_compare(struct device *device, enum parts_when when);

/* For a child of fork(). */
void oom_reset_after_fork(void);
