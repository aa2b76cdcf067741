/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PID by which the driver lists this process.
 *
 * It is our own, where the driver names processes by the asker's PID namespace (580 does). An older
 * driver names them by the host's, which is told to no process in a namespace. There the list is read before
 * this process's first context on a device and after it: a PID that is new, alone in that, and shows as
 * much memory as the context took is ours. If that is not clear, no PID is ours and the ledger
 * is not compared with the driver.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/slice/state.h"

/*
 * Whether the driver was seen to list a process of the slice by its own PID. Then nothing needs to be
 * found, and NVML, whose beginning takes 13 ms (H200), not to be asked.
 */
bool own_pid_is_certain(const struct device *device);
/* A figure was found by own_pid(). */
void own_pid_is_confirmed(const struct device *device);

/* Around the making of this process's first context on a device. */
void own_pid_before_context(const struct device *device);
/* context_bytes is what a context is known to take; 0: not known yet. */
void own_pid_after_context(const struct device *device, uint64_t context_bytes);

/* 0 where it is not known. */
unsigned own_pid(void);

/*
 * Device memory that the driver counts for this process, in bytes; -ENOENT where it lists this process by no
 * PID that we know, -ENODEV without NVML. known_bytes is what of it is in the ledger: a PID that was found
 * shows itself to be another's by a figure that stays far below.
 */
int own_pid_memory_bytes(const char *uuid, uint64_t known_bytes, uint64_t *ret_bytes) MUST_CHECK;

/* For a child of fork(). */
void own_pid_reset_after_fork(void);
