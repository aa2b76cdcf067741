/* SPDX-License-Identifier: Apache-2.0 */
/* What we ask NVML for ourselves: which device an index means, and who uses a device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/nvml.h"

/* The device's index in NVML's order, the order of the container's devices; -ENODEV without NVML. */
int nvml_index_of(const char *uuid, unsigned *ret_index) MUST_CHECK;

/* A list of processes as the driver gives it, whatever forms of it the driver has. */
#define NVML_ROWS 256
struct process_rows {
	unsigned count;
	nvmlProcessInfo_t at[NVML_ROWS];
};
enum process_list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS };

/* -ENODEV where the driver does not tell, or lists more than NVML_ROWS. NVML is begun. */
int nvml_list(
	nvmlDevice_t device, enum process_list kind, struct process_rows *ret_rows) MUST_CHECK;

/* The compute processes of a device; -ENODEV without NVML. */
int nvml_processes(const char *uuid, struct process_rows *ret_rows) MUST_CHECK;

/* The same, and how much of the device is in use in all. */
int nvml_look(const char *uuid, struct process_rows *ret_rows, uint64_t *ret_used_bytes) MUST_CHECK;

/*
 * Who kept a device busy since then (a time stamp of the driver's; 0: as far as it remembers), and how busy it
 * is at all. Costs 1.5 ms (H200), and NVML's beginning. -ENODEV where the driver does not tell.
 */
struct busy_rows {
	unsigned device_percent;
	unsigned count; /* may be 0 */
	nvmlProcessUtilizationSample_t at[NVML_ROWS];
};
int nvml_busy(const char *uuid, uint64_t since_us, struct busy_rows *ret_rows) MUST_CHECK;

/* Whether NVML is begun, so that a question costs no more than itself. */
bool nvml_is_begun(void);

/* For a child of fork(). */
void nvml_reset_after_fork(void);
