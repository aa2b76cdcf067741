/* SPDX-License-Identifier: Apache-2.0 */
/* How much of its stack the program's thread has left, before a call of the driver's that needs much of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* nvmlDeviceGetProcessUtilization() takes 128 KiB (H200, driver 580). */
#define STACK_BUSY_BYTES ((size_t)160 << 10)

/*
 * Whether so many bytes, STACK_BUSY_BYTES at most, are there below the caller; true where it cannot be told. A system
 * call or two. Context: any thread, keeps errno.
 */
bool stack_has_room(size_t bytes);
