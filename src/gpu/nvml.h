/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to NVML, in whatever forms its version has them.
 *
 * The program loads NVML and fills the table; a function of an optional row may be NULL in it or answer
 * NVML_ERROR_FUNCTION_NOT_FOUND (gpu/driver.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/lock.h"
#include "gpu/driver.h"

/*
 * One beginning of NVML for all threads of a process: it costs 13 ms (H200). NVML counts its beginnings, so
 * another use of it in the same process is not disturbed.
 */
struct nvml_session {
	const struct nvml_driver *driver;
	bool (*load)(
		void); /* fills the table; false where there is no NVML. NULL: the table is full */
	nvmlReturn_t result; /* of the last beginning */
	struct lock lock;
	_Atomic bool is_begun;
};

/* -ENODEV where NVML is missing or does not start, or another thread takes too long to start it. */
int nvml_session_begin(struct nvml_session *session) MUST_CHECK;

/* Fit for a session that is not begun. */
void nvml_session_end(struct nvml_session *session);

bool nvml_session_is_begun(const struct nvml_session *session);

/* Whether NVML says that it is not begun, though it was; then the session is not begun either. */
bool nvml_session_is_lost(struct nvml_session *session);

/* In the child, the session is not begun. */
void nvml_session_reset_after_fork(struct nvml_session *session);

/*
 * All below need a begun session. They return -ENODEV where NVML does not know the device or does not tell.
 */

/* The device of a UUID, as CUDA or NVML writes it; it may be a MIG device. */
int nvml_find_device(
	const struct nvml_driver *nvml, const char *uuid, nvmlDevice_t *ret_device) MUST_CHECK;

/* The device's index in NVML's order, the order of the container's devices. */
int nvml_find_index(
	const struct nvml_driver *nvml, const char *uuid, unsigned *ret_index) MUST_CHECK;

int nvml_read_memory(
	const struct nvml_driver *nvml, nvmlDevice_t device, nvmlMemory_t *ret_memory) MUST_CHECK;

#define NVML_ROWS 256
struct process_rows {
	unsigned count;
	nvmlProcessInfo_t at[NVML_ROWS];
};
enum process_list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS };

/* Also -ENODEV where the driver lists more than NVML_ROWS. */
int nvml_list_processes(const struct nvml_driver *nvml, nvmlDevice_t device, enum process_list kind,
	struct process_rows *ret_rows) MUST_CHECK;

struct busy_rows {
	unsigned device_percent;
	unsigned count; /* may be 0 */
	nvmlProcessUtilizationSample_t at[NVML_ROWS];
};

/*
 * The processes that kept the device busy since then (a time stamp of the driver's; 0: as far as it
 * remembers), and how busy the device is. Costs 1.5 ms (H200).
 */
int nvml_read_busy(const struct nvml_driver *nvml, nvmlDevice_t device, uint64_t since_us,
	struct busy_rows *ret_rows) MUST_CHECK;
