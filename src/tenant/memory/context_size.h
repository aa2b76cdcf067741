/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a context takes.
 *
 * It depends on device and driver (518 MiB on an H200 with driver 580) and nobody tells beforehand. So the first of a slice
 * reserves an estimate, and afterwards NVML's figure for this process tells it, which the region keeps for all that
 * follow.
 */
#pragma once

#include <stdatomic.h>

#include "tenant/memory/charge.h"

/* What is known of a context's size. */
enum context_size_found {
	CONTEXT_SIZE_KNOWN,
	CONTEXT_SIZE_UNSURE, /* its charge may be too small */
	CONTEXT_SIZE_LARGER, /* it was */
};

/* What is learned; of old figures none that is above the estimate, because one that refuses all is never corrected. */
uint64_t context_size_expected_bytes(const struct device *device);

/*
 * A context was made that the charge is for, beside those of the device that live. Only where the process holds nothing but contexts, with no
 * other call under way, does NVML's figure tell the size of one, and every such figure corrects the one that is remembered,
 * and the charge.
 */
enum context_size_found context_size_measure(
	struct device *device, struct charge *charge, const _Atomic uint32_t *live);
