/* SPDX-License-Identifier: Apache-2.0 */
/* What we ask NVML for ourselves: which device an index means, and what this process really uses. */
#pragma once

#include <stdint.h>

#include "base/bits.h"

/* The device's index in NVML's order, the order of the container's devices; -ENODEV without NVML. */
int nvml_index_of(const char *uuid, unsigned *ret_index) MUST_CHECK;

/*
 * Device memory that the driver counts for this process, in bytes; -ENOENT where NVML does not know
 * this process (an older driver may count by the host's PID), -ENODEV without NVML.
 */
int nvml_own_use(const char *uuid, uint64_t *ret_bytes) MUST_CHECK;

/* For a child of fork(). */
void nvml_forget_parent(void);
