/* SPDX-License-Identifier: Apache-2.0 */
/* NVML, loaded by a program of ours for itself. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/inventory.h"
#include "gpu/nvml.h"

struct nvml_library {
	void *handle; /* NULL: not open */
	struct nvml_driver driver;
	struct nvml_node node;
	struct nvml_session session;
};

enum {
	_NVML_LIBRARY_E_SUCCESS = 0,
	NVML_LIBRARY_E_NONE, /* no NVML here, or no driver behind it; err says which */
};

/*
 * Loads and begins NVML: the library at that path, or the machine's own where it is NULL. 0,
 * NVML_LIBRARY_E_NONE, or -ENOSYS where the library is too old for us, with err set. An open library does not
 * move in memory.
 */
int nvml_library_open(
	const char *path, struct nvml_library *ret_library, struct err *err) MUST_CHECK;

/* Fit for a struct that is all zero. */
void nvml_library_close(struct nvml_library *library);

/* Opens the library, reads the devices and closes it. As nvml_library_open() and inventory_read(). */
int nvml_library_read_inventory(
	const char *path, struct inventory *ret_inventory, struct err *err) MUST_CHECK;

/* A process, and what NVML says that it holds of all devices that are looked at. */
struct nvml_holder {
	int pid;
	uint64_t bytes;
};

/*
 * The processes that hold memory of these devices as programs of CUDA, by the machine's own NVML: PIDs are the machine's. NULL with a count of 0
 * where it says nothing, or memory is short. The caller frees.
 */
struct nvml_holder *nvml_library_list_holders(const struct inventory *devices, size_t *ret_count);

/* What it says that a process holds, by its PID; 0 where it says nothing. */
uint64_t nvml_library_read_held(const struct inventory *devices, int pid);
