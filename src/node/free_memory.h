/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether devices have room for what is to come back to them.
 *
 * The driver does not say beforehand, and a process that it tries to restore without room is lost: measured on
 * an H200 with driver 580.159, the first try gives CUDA_ERROR_OUT_OF_MEMORY, and each later one
 * CUDA_ERROR_OPERATING_SYSTEM, though there is room by then.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/abi/nvml.h"
#include "node/evictee.h"
#include "region/snapshot.h"

#define FREE_MEMORY_FUNCTIONS(X)                   \
	X(nvmlInit_v2)                             \
	X(nvmlShutdown)                            \
	X(nvmlDeviceGetHandleByUUID)               \
	X(nvmlDeviceGetMemoryInfo)                 \
	X(nvmlDeviceGetComputeRunningProcesses_v3) \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3)

struct free_memory {
	void *handle; /* NULL: there is nobody to ask, and room is taken for granted */
#define X(symbol) symbol##_fn *symbol;
	FREE_MEMORY_FUNCTIONS(X)
#undef X
};

/*
 * Gets ready to ask NVML: the library at that path, or the machine's own where it is NULL. One that is not there or
 * does not start is asked nothing.
 */
void free_memory_open(const char *library, struct free_memory *ret_memory);

/* Fit for a struct that is all zero. */
void free_memory_close(struct free_memory *memory);

/*
 * Whether each device has room for `one` of the evictees, or where it is NULL for all together whose memory is away;
 * their `bytes` are by the devices of `seen`. -ENOSPC with err set; of a device that NVML does not know
 * nothing is said.
 */
int free_memory_check(const struct free_memory *memory, const struct evictees *all,
	const struct evictee *one, const struct snapshot *seen, struct err *err) MUST_CHECK;
