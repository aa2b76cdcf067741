/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether devices have free memory for what is to come back to them.
 *
 * The driver does not say beforehand, and a process that it tries to restore without free memory is lost: measured on
 * an H200 with driver 580.159, the first try gives CUDA_ERROR_OUT_OF_MEMORY, and each later one
 * CUDA_ERROR_OPERATING_SYSTEM, though there is memory by then.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/nvml.h"
#include "node/evictee.h"
#include "region/snapshot.h"

/*
 * Whether each device has free memory for `one` of the evictees, or where it is NULL for all together whose memory is away;
 * their `bytes` are by the devices of `seen`. -ENOSPC with err set; of a device that NVML does not know
 * nothing is said, nor where `nvml` is NULL: memory is taken for granted there.
 */
int free_memory_check(const struct nvml_driver *nvml, const struct evictees *all,
	const struct evictee *one, const struct snapshot *seen, struct err *err) MUST_CHECK;
