/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory beyond the device's: CUDA_OVERSUBSCRIBE.
 *
 * Where the quota has room and the card has none, an allocation is placed in managed memory that
 * stays on the host, where the device works on it (docs/decisions/0013-oversubscription.md). Such a
 * block is called a host fallback. It is charged like any other managed memory.
 */
#pragma once

#include "tenant/memory/allocations.h"
#include "tenant/memory/charge.h"

/*
 * Whether allocations on the device may get host fallbacks: the option is on, the device has a quota, and
 * it can work on managed memory that is elsewhere. Where it cannot, that is said once.
 */
bool oversubscribe_is_on(const struct device *device);

/*
 * What comes of an allocation that was refused with r: a host fallback, or r itself where there can be
 * none. charge, if it has reserved anything, has reserved allocations_worst_bytes(bytes).
 */
CUresult oversubscribe_place(CUresult r, size_t bytes, struct charge *charge, CUdeviceptr *pointer);

/* For a child of fork(). */
void oversubscribe_reset_after_fork(void);
