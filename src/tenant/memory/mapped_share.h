/* SPDX-License-Identifier: Apache-2.0 */
/* Created memory (mapped.h) that other processes have, or this one has of others: exports and imports. */
#pragma once

#include "tenant/memory/mapped.h"

struct shared_name;

/*
 * An export of the memory, around the driver's. Before, its charge becomes a shared allocation, held once
 * more meanwhile; afterwards it can be imported by other processes, by the descriptor fd or (fd is -1) by a
 * handle with this name. Whoever imports it in this slice pays nothing more.
 */
struct mapped_export {
	struct mapped_reference reference; /* pinned */
	bool is_shared;
	unsigned shared;
};
CUresult mapped_export_begin(
	CUmemGenericAllocationHandle handle, struct mapped_export *ret_export) MUST_CHECK;
/* False: it cannot be kept track of where it goes, and the descriptor must be closed. */
bool mapped_export_end(
	const struct mapped_export *export, bool is_made, int fd, const struct shared_name *name);

/*
 * What an import of the shared allocation gives where this process has a handle or mapping of it: one more reference to that
 * handle. Nothing is imported then, so it does not matter what the importer's descriptor is of. CUDA_ERROR_NOT_FOUND: there
 * is none to be had, or another thread is ending it. CUDA_ERROR_OUT_OF_MEMORY: the driver refuses the reference, and what it would import
 * instead would be charged once more, for as long as the process has either.
 */
CUresult mapped_import_again(unsigned shared, CUmemGenericAllocationHandle *ret_handle) MUST_CHECK;

/*
 * Imports of a process are one after the other: of two at once each would find that there is another one's hold of the memory.
 * False: another thread's goes on for too long, and is not waited for.
 */
bool mapped_imports_enter(void);
void mapped_imports_leave(bool is_entered);

/*
 * An imported handle: of a shared allocation that is held, and from now on by the handle. since: as of before the driver was
 * asked.
 */
CUresult mapped_keep_shared(CUmemGenericAllocationHandle handle, unsigned shared, uint64_t since);

/* An imported handle of somebody who is not of this slice. CUDA_ERROR_OUT_OF_MEMORY: it must not be used. */
CUresult mapped_keep_foreign(
	CUmemGenericAllocationHandle handle, struct device *device, uint64_t bytes, uint64_t since);

/* An imported handle of what lies on no device, as a multicast object does, which others may keep. */
CUresult mapped_keep_object(CUmemGenericAllocationHandle handle, uint64_t since);

/*
 * How large the memory of a handle is that was just imported, for nothing that comes with it needs to be true. The driver
 * maps a handle whole or not at all (H200, driver 580), so it is what it can be mapped as: told_bytes, or what is found up
 * to the most that the slice may have on the device. 0: it is larger, or cannot be mapped.
 */
uint64_t mapped_measure(
	CUmemGenericAllocationHandle handle, const struct device *device, uint64_t told_bytes);

/* For a child of fork(). */
void mapped_share_reset_after_fork(void);
