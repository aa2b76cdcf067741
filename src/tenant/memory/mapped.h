/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created, mapped and shared by handle (cuMemCreate and its kin).
 *
 * It lives until the last of its references goes: handles that were created or retained, mappings, and bindings to
 * multicast objects (multicast.h). Releasing the handle of mapped memory frees nothing. A handle's references end by
 * holding_end_begin() of HOLDING_CREATED.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"

struct shared_name;

/* Keeps the charge for a new handle. Without memory of our own the handle is released again. */
CUresult mapped_keep(CUmemGenericAllocationHandle handle, struct charge *charge);

/*
 * A call that will refer to the memory, around the driver's: begin pins it. serial 0: it is nobody's (on the
 * host, say), and the driver is just asked. CUDA_ERROR_INVALID_VALUE: another thread is releasing it.
 */
struct mapped_reference {
	CUmemGenericAllocationHandle handle;
	uint32_t serial;
	bool is_object; /* not memory but a multicast object, which its importers keep */
};
CUresult mapped_refer_begin(
	CUmemGenericAllocationHandle handle, struct mapped_reference *ret_reference) MUST_CHECK;
/* The mapping that the address is in. */
bool mapped_find(CUdeviceptr at, CUdeviceptr *ret_start, CUdeviceptr *ret_end) MUST_CHECK;
/* The same for what is mapped at the address. */
CUresult mapped_refer_begin_at(CUdeviceptr at, struct mapped_reference *ret_reference) MUST_CHECK;
/* False: what the driver made must be undone. */
bool mapped_refer_end(const struct mapped_reference *reference, bool is_made);

/*
 * Calls that map or unmap in one range are one after the other: else the driver would have them in another order than the books, and
 * unmap what another entry is of. The rest of the enclosing block is such a call. One that does not come back is not waited for, and of too
 * many at once some have no place.
 */
int mapped_turn_enter(CUdeviceptr at, uint64_t bytes);
void mapped_turn_leave(const int *place);
#define MAPPED_TURN_SCOPE(at, bytes)                                                 \
	__attribute__((cleanup(mapped_turn_leave), unused)) const int mapped_turn_ = \
		mapped_turn_enter((at), (bytes))

/* Remembers a mapping, whose reference was made before; false without memory. */
bool mapped_map(CUdeviceptr at, uint64_t bytes, const struct mapped_reference *reference);

/*
 * An export of the memory, around the driver's. Before, its charge becomes a shared allocation, held once
 * more meanwhile; afterwards it can be imported by other processes, by the descriptor fd or (fd is -1) by a
 * handle with this key. Whoever imports it in this slice pays nothing more.
 */
struct mapped_export {
	struct mapped_reference reference; /* pinned, where it cannot be shared */
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

/* Ends a reference in the driver that is our own. False where it is refused each time, so that the memory stays. */
bool mapped_let_go(CUmemGenericAllocationHandle handle);

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

/* The mappings that lie wholly in a range. */
struct mapped_part {
	CUdeviceptr at;
	uint64_t bytes;
	struct holding_end end; /* of the mapping's reference */
	struct mapped_reference reference;
};

#define MAPPED_FEW 16 /* so many need no memory of their own */
struct mapped_range {
	unsigned count, places;
	struct mapped_part *parts;
	struct mapped_part few[MAPPED_FEW];
};

/* Out of the tables while the driver unmaps them. False without memory: the driver must not be asked. */
bool mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_range *range) MUST_CHECK;
void mapped_unmap_end(struct mapped_range *range, bool is_unmapped);

/*
 * Pinned while the driver makes something that may keep them; then they stay charged until the process ends.
 * False afterwards: they are not all there any more, and what was made must be undone.
 */
CUresult mapped_stay_begin(CUdeviceptr at, uint64_t bytes, struct mapped_range *range) MUST_CHECK;
bool mapped_stay_end(struct mapped_range *range, bool is_made);

/* For a child of fork(). */
void mapped_reset_after_fork(void);
