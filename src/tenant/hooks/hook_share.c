/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: memory shared with other processes, by handles of bytes and by descriptors. */
#define LOG_TOPIC LOG_MEMORY
#include <string.h>

#include "base/log.h"
#include "base/mark.h"
#include "region/ledger.h"
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/mapped.h"
#include "tenant/memory/opened.h"
#include "tenant/memory/pools.h"
#include "tenant/memory/ipc.h"

/* Managed memory cannot be shared, so a host fallback cannot either: the driver says so, and we why. */
HOOK_BODY(cuIpcGetMemHandle, CUipcMemHandle *, handle, CUdeviceptr, pointer)
{
	CUdeviceptr base = pointer;
	CUresult r = cuda.cuIpcGetMemHandle(handle, pointer);

	if (r != CUDA_SUCCESS && state_enter() == STATE_OPEN && allocations_falls_back(pointer))
		log_warn("memory that was placed in the host's (CUDA_OVERSUBSCRIBE) cannot be "
			 "shared "
			 "with other processes",
			U64("pointer", pointer));
	if (r != CUDA_SUCCESS || state_enter() != STATE_OPEN)
		return r;
	if (cuda.cuMemGetAddressRange_v2)
		cuda.cuMemGetAddressRange_v2(&base, NULL, pointer);
	allocations_share(base, ipc_key(handle, sizeof(*handle)));
	return r;
}

static CUresult open_handle(CUdeviceptr *pointer, const CUipcMemHandle *handle, unsigned int flags,
	cuIpcOpenMemHandle_fn *call)
{
	enum state_mode mode = state_enter();
	struct opening opening;
	CUresult r;

	if (mode == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (mode == STATE_ASIDE || !pointer)
		return call(pointer, *handle, flags);
	opened_begin(handle, &opening);
	r = call(pointer, *handle, flags);
	if (r == CUDA_SUCCESS)
		return opened_keep(*pointer, &opening);
	opened_undo(&opening);
	return r;
}

HOOK_FORMS(cuIpcOpenMemHandle, _v2, CUdeviceptr *, pointer, CUipcMemHandle, handle, unsigned int,
	flags)
{
	return open_handle(pointer, &handle, flags, real);
}

HOOK_BODY(cuIpcCloseMemHandle, CUdeviceptr, pointer)
{
	struct holding_end end;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || holding_end_begin(HOLDING_OPENED, pointer, &end) != 0)
		return cuda.cuIpcCloseMemHandle(pointer);
	r = cuda.cuIpcCloseMemHandle(pointer);
	holding_end_done(&end, r == CUDA_SUCCESS);
	return r;
}

/* What a shareable handle is: a descriptor that can be marked, or bytes with a key. */
struct shareable {
	int fd; /* -1: none */
	uint64_t key;
};

/* False for what Linux does not have. */
static bool read_shareable(
	const void *handle, CUmemAllocationHandleType type, struct shareable *ret_shareable)
{
	*ret_shareable = (struct shareable){.fd = -1};
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		memcpy(&ret_shareable->fd, handle, sizeof(int));
	else if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		ret_shareable->key = ipc_key(handle, sizeof(CUmemFabricHandle));
	else
		return false;
	return true;
}

HOOK_BODY(cuMemExportToShareableHandle, void *, shareable, CUmemGenericAllocationHandle, handle,
	CUmemAllocationHandleType, type, unsigned long long, flags)
{
	struct shareable s = {.fd = -1};
	struct mapped_export export;
	bool is_shareable;
	CUresult r;

	if (state_enter() != STATE_OPEN || !shareable)
		return cuda.cuMemExportToShareableHandle(shareable, handle, type, flags);
	r = mapped_export_begin(handle, &export);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuMemExportToShareableHandle(shareable, handle, type, flags);
	is_shareable = r == CUDA_SUCCESS && read_shareable(shareable, type, &s);
	mapped_export_end(&export, is_shareable, s.fd, s.key);
	return r;
}

/* What is about to be imported: whose it is, and how large as far as it says. */
struct import {
	bool is_shared;
	unsigned shared;
	uint64_t bytes; /* of another slice's; 0: not known */
};

static void import_begin(void *handle, CUmemAllocationHandleType type, struct import *ret_import)
{
	struct mark mark = {.id = 0};

	*ret_import = (struct import){.is_shared = false};
	if (type == CU_MEM_HANDLE_TYPE_FABRIC && handle)
		mark.id = ipc_key(handle, sizeof(CUmemFabricHandle));
	else if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		 mark_get((int)(intptr_t)handle, &mark) < 0)
		return;
	ret_import->bytes = mark.steps * MARK_STEP_BYTES;
	ret_import->is_shared = ipc_hold(mark.id, &ret_import->shared);
}

static void import_undo(const struct import *import)
{
	if (import->is_shared)
		ipc_let_go(import->shared, false);
}

/* An import from another slice: charged as soon as its size is known. */
static CUresult keep_foreign(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	struct device *device;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	if (cuda.cuMemGetAllocationPropertiesFromHandle)
		r = cuda.cuMemGetAllocationPropertiesFromHandle(&properties, handle);
	if (r == CUDA_SUCCESS && properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_SUCCESS;
	if (r != CUDA_SUCCESS || state_meet_device(properties.location.id, &device) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	log_info("memory of another slice is imported, and charged to this one as well",
		STR("device", device->uuid), U64("bytes", bytes));
	return mapped_keep_foreign(handle, device, bytes);
}

HOOK_BODY(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, handle, void *, os_handle,
	CUmemAllocationHandleType, type)
{
	enum state_mode mode;
	struct import import;
	CUresult r;

	mode = state_enter();
	if (mode == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (mode == STATE_ASIDE || !handle)
		return cuda.cuMemImportFromShareableHandle(handle, os_handle, type);
	import_begin(os_handle, type, &import);
	r = cuda.cuMemImportFromShareableHandle(handle, os_handle, type);
	if (r != CUDA_SUCCESS) {
		import_undo(&import);
		return r;
	}
	r = import.is_shared ? mapped_keep_shared(*handle, import.shared)
			     : keep_foreign(*handle, import.bytes);
	if (r != CUDA_SUCCESS) {
		cuda.cuMemRelease(*handle);
		import_undo(&import);
	}
	return r;
}

HOOK_BODY(cuMemPoolExportToShareableHandle, void *, handle, CUmemoryPool, pool,
	CUmemAllocationHandleType, type, unsigned long long, flags)
{
	struct shareable s;
	CUresult r = cuda.cuMemPoolExportToShareableHandle(handle, pool, type, flags);

	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN && read_shareable(handle, type, &s))
		pools_share(pool, s.fd, s.key);
	return r;
}

/*
 * An imported pool allocates nothing, and what is in it is its maker's. This process holds the maker's
 * shared allocation until it ends, because pointers of the pool may outlive the pool's handle here.
 */
HOOK_BODY(cuMemPoolImportFromShareableHandle, CUmemoryPool *, pool, void *, handle,
	CUmemAllocationHandleType, type, unsigned long long, flags)
{
	struct import import;
	CUresult r;

	if (state_enter() != STATE_OPEN || !pool)
		return cuda.cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
	import_begin(handle, type, &import);
	r = cuda.cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
	if (r != CUDA_SUCCESS)
		import_undo(&import);
	else if (pools_add(*pool, NULL) < 0)
		log_debug("an imported pool is entered when it is used");
	return r;
}
