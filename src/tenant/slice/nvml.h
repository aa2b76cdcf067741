/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant library's own questions to NVML, which it begins for the first of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/nvml.h"

/* All return -ENODEV without NVML, or where it does not tell. */

/* The device's index in NVML's order, the order of the container's devices. */
int nvml_index_of(const char *uuid, unsigned *ret_index) MUST_CHECK;

/* The compute processes of a device. */
int nvml_processes(const char *uuid, struct process_rows *ret_rows) MUST_CHECK;

/* The same, and how much of the device is in use in all. */
int nvml_usage(
	const char *uuid, struct process_rows *ret_rows, uint64_t *ret_used_bytes) MUST_CHECK;

/* See nvml_read_busy(). */
int nvml_busy(const char *uuid, uint64_t since_us, struct busy_rows *ret_rows) MUST_CHECK;

/* Whether NVML is begun, so that a question costs no more than itself. */
bool nvml_is_begun(void);

/* The program has begun NVML; whether it has, and not ended, so that it may end it once. */
void nvml_program_began(void);
bool nvml_program_may_end(void);

/* For a child of fork(). */
void nvml_reset_after_fork(void);
