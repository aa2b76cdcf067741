/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: memory shared with other processes, by handles of bytes and by descriptors. */
#define LOG_TOPIC LOG_MEMORY
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "region/ledger.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/mapped_share.h"
#include "tenant/memory/opened.h"
#include "tenant/memory/pool_list.h"
#include "tenant/memory/pools.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/reconcile.h"
#include "tenant/slice/quota.h"

/* A handle that no process of the slice could open is given out where handles of others are opened alone. */
static CUresult give_name(CUdeviceptr base, const struct shared_name *name)
{
	if (allocations_share(base, name))
		return CUDA_SUCCESS;
	if (!quota_may_import()) {
		log_info("the region has no place for memory that others open, or the slice no "
			 "room, so its handle is not given out; the line \"imports any\" of the "
			 "share gives it out all the same (vgpu run --imports any)");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	log_debug("memory that can be opened stays counted for its maker alone");
	return CUDA_SUCCESS;
}

/* Managed memory cannot be shared, so a host fallback cannot either: the driver says so, and we why. */
HOOK_BODY(cuIpcGetMemHandle, CUipcMemHandle *, handle, CUdeviceptr, pointer)
{
	CUdeviceptr base = pointer;
	struct shared_name name;
	CUipcMemHandle made;
	CUresult r = cuda.cuIpcGetMemHandle(handle ? &made : NULL, pointer);

	if (r != CUDA_SUCCESS && state_enter() == STATE_OPEN && allocations_falls_back(pointer))
		log_warn("memory that was placed in the host's (CUDA_OVERSUBSCRIBE) cannot be "
			 "shared "
			 "with other processes",
			U64("pointer", pointer));
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN) {
		if (cuda.cuMemGetAddressRange_v2)
			cuda.cuMemGetAddressRange_v2(&base, NULL, pointer);
		name = ipc_name(&made);
		r = give_name(base, &name);
	}
	return HOOK_GIVE(r, handle, made);
}

HOOK_FORMS(cuIpcOpenMemHandle, _v2, CUdeviceptr *, pointer, CUipcMemHandle, handle, unsigned int,
	flags)
{
	struct opening opening;
	CUdeviceptr made = 0;
	CUresult r;
	CURRENT_STAYS();

	HOOK_NEEDS_BOOKS(!pointer, real(pointer, handle, flags));
	r = opened_begin(&handle, &opening);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(&made, handle, flags);
	if (r == CUDA_SUCCESS)
		r = opened_keep(made, &opening);
	else
		opened_undo(&opening);
	return HOOK_GIVE(r, pointer, made);
}

HOOK_BODY(cuIpcCloseMemHandle, CUdeviceptr, pointer)
{
	struct holding_end end;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || holding_end_begin(HOLDING_OPENED, pointer, &end) != 0) {
		CHARGE_STRAY_SCOPE();
		return cuda.cuIpcCloseMemHandle(pointer);
	}
	r = cuda.cuIpcCloseMemHandle(pointer);
	holding_end_done(&end, r == CUDA_SUCCESS);
	return r;
}

/* What Linux has for a shareable handle: a descriptor that can be marked, or bytes with a key. */
union shareable {
	int fd;
	CUmemFabricHandle fabric;
};

static bool is_shareable(CUmemAllocationHandleType type)
{
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	       type == CU_MEM_HANDLE_TYPE_FABRIC;
}

/* -1: none */
static int fd_of(CUmemAllocationHandleType type, const union shareable *s)
{
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? s->fd : -1;
}

static struct shared_name name_of(CUmemAllocationHandleType type, const union shareable *s)
{
	return type == CU_MEM_HANDLE_TYPE_FABRIC ? ipc_name(&s->fabric)
						 : (struct shared_name){.key = 0};
}

/* What a slice that gives out no descriptors is told. */
static bool is_withheld(CUmemAllocationHandleType type)
{
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || quota_may_export())
		return false;
	log_info("the slice's share says that no descriptors of device memory are given out");
	return true;
}

/* What nobody could keep track of is not given out. */
static CUresult take_back(CUmemAllocationHandleType type, const union shareable *made)
{
	if (fd_of(type, made) >= 0)
		close(made->fd);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult give_shareable(
	CUresult r, void *to, CUmemAllocationHandleType type, const union shareable *made)
{
	if (r == CUDA_SUCCESS)
		memcpy(to, made, fd_of(type, made) < 0 ? sizeof(made->fabric) : sizeof(made->fd));
	return r;
}

HOOK_BODY(cuMemExportToShareableHandle, void *, shareable, CUmemGenericAllocationHandle, handle,
	CUmemAllocationHandleType, type, unsigned long long, flags)
{
	struct mapped_export export;
	struct shared_name name;
	union shareable made;
	CUresult r;
	CHARGE_SCOPE();

	HOOK_NEEDS_BOOKS(!shareable || !is_shareable(type),
		cuda.cuMemExportToShareableHandle(shareable, handle, type, flags));
	if (is_withheld(type))
		return CUDA_ERROR_NOT_SUPPORTED;
	r = mapped_export_begin(handle, &export);
	if (r != CUDA_SUCCESS)
		return r;
	/* Who has a multicast object keeps what is bound to it, by whichever handle it came. */
	r = export.reference.is_object && !quota_may_export()
		    ? CUDA_ERROR_NOT_SUPPORTED
		    : cuda.cuMemExportToShareableHandle(&made, handle, type, flags);
	if (r != CUDA_SUCCESS) {
		(void)mapped_export_end(&export, false, -1, NULL);
		return r;
	}
	name = name_of(type, &made);
	if (!mapped_export_end(&export, true, fd_of(type, &made), &name))
		r = take_back(type, &made);
	return give_shareable(r, shareable, type, &made);
}

/*
 * What is about to be imported: whose it is, and how large as far as it says. The driver gets a copy of the bytes, or
 * of the descriptor, because another thread can put another one in its place.
 */
struct import {
	bool is_shared;
	unsigned shared;
	uint64_t bytes; /* as it is told; 0: not known */
	uint64_t since; /* charge_since() */
	CUmemFabricHandle fabric;
	int fd;	      /* -1: none */
	void *handle; /* for the driver */
};

static void import_begin(
	void *handle, CUmemAllocationHandleType type, enum mark_of of, struct import *ret_import)
{
	struct shared_name name = {.key = 0};
	struct mark mark = {.id = 0};

	*ret_import = (struct import){
		.fd = -1, .handle = (void *)(uintptr_t)handle, .since = charge_since()};
	if (type == CU_MEM_HANDLE_TYPE_FABRIC && handle) {
		memcpy(&ret_import->fabric, handle, sizeof(ret_import->fabric));
		ret_import->handle = &ret_import->fabric;
		name = ipc_name(&ret_import->fabric);
	} else if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		ret_import->fd = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 0);
		if (ret_import->fd < 0)
			return;
		ret_import->handle = (void *)(intptr_t)ret_import->fd;
		if (mark_get(ret_import->fd, &mark) < 0 || mark_of(mark.id) != of)
			return;
		name.key = mark.id;
	}
	ret_import->is_shared = name.key && ipc_hold(&name, false, &ret_import->shared);
	ret_import->bytes = (ret_import->is_shared ? ipc_steps(ret_import->shared) : mark.steps) *
			    MARK_STEP_BYTES;
}

/* After the driver's call, whatever its answer. */
static void import_end(const struct import *import)
{
	if (import->fd >= 0)
		close(import->fd);
}

static void import_undo(struct import *import)
{
	if (import->is_shared)
		ipc_let_go(import->shared, false);
	import->is_shared = false;
}

/* Where the memory lies; NULL: not on a device, so it is nobody's. */
static CUresult find_device(CUmemGenericAllocationHandle handle, struct device **ret_device)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUresult r = CUDA_ERROR_NOT_FOUND;

	*ret_device = NULL;
	if (cuda.cuMemGetAllocationPropertiesFromHandle)
		r = cuda.cuMemGetAllocationPropertiesFromHandle(&properties, handle);
	if (r == CUDA_SUCCESS && properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_SUCCESS;
	if (r != CUDA_SUCCESS || state_meet_device(properties.location.id, ret_device) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

/* Longest wait for another thread that is just releasing what is imported. */
#define RELEASE_WAIT_NS UINT64_C(1000000000)

/*
 * Memory that names a shared allocation is believed to be of it once in a process: nothing tells other memory of that size
 * from it. Who has it already gets what it has (import_again()), unless another thread lets go of that just now.
 */
static bool is_believed(const struct import *import, uint64_t bytes)
{
	struct patience patience;

	if (!import->is_shared || bytes != import->bytes)
		return false;
	patience = patience_begin(RELEASE_WAIT_NS);
	for (unsigned i = 0; ipc_holds(import->shared) != 1; i++) {
		/* A call that lets go of it is in the traffic. */
		if ((uint32_t)charge_traffic() == 0 || patience_is_over(&patience))
			return ipc_holds(import->shared) == 1;
		lock_rest(i);
	}
	return true;
}

/*
 * Enters what was imported: of the shared allocation that it names, or another slice's, or nobody's who would be charged for
 * it, and then this process is.
 */
static CUresult keep_imported(CUmemGenericAllocationHandle handle, struct import *import)
{
	struct device *device;
	CUresult r = find_device(handle, &device);
	uint64_t bytes;

	if (r != CUDA_SUCCESS)
		return r;
	bytes = device ? mapped_measure(handle, device, import->bytes) : 0;
	if (is_believed(import, bytes))
		return mapped_keep_shared(handle, import->shared, import->since);
	import_undo(import);
	if (!device)
		return mapped_keep_object(handle, import->since);
	log_info("memory of another slice is imported, and counted for this one as well",
		STR("device", device->uuid), U64("bytes", bytes));
	return bytes ? mapped_keep_foreign(handle, device, bytes, import->since)
		     : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * What needs no import: this process has the shared allocation that it names, by a handle of its own. CUDA_ERROR_NOT_FOUND: it needs
 * one. Who has memory and gets no other reference to it does not get it a second time either.
 */
static CUresult import_again(struct import *import, CUmemGenericAllocationHandle *ret_handle)
{
	CUresult r;

	/* This import's hold is the only one. */
	if (!import->is_shared || ipc_holds(import->shared) == 1)
		return CUDA_ERROR_NOT_FOUND;
	r = mapped_import_again(import->shared, ret_handle);
	if (r == CUDA_SUCCESS)
		import_undo(import);
	return r;
}

/* Where this process made what it imports; NULL: elsewhere. */
static struct device *own_device(const struct import *import)
{
	int entry = import->is_shared ? ipc_own_entry(import->shared) : -1;

	for (int i = 0; entry >= 0 && i < STATE_ORDINALS; i++) {
		struct device *device = state_known_device(i);

		if (device && device->entry == (unsigned)entry)
			return device;
	}
	return NULL;
}

/* What its maker has released and imports again may be in NVML's figure for it once more, and is in the books already. */
static CUresult import_anew(struct import *import, CUmemAllocationHandleType type,
	CUmemGenericAllocationHandle *ret_handle)
{
	struct device *own = own_device(import);
	struct reconcile_figure before = {.is_told = false};
	CUresult r;

	if (own)
		before = reconcile_ask(own);
	r = cuda.cuMemImportFromShareableHandle(ret_handle, import->handle, type);
	if (own && r == CUDA_SUCCESS && reconcile_has_risen(own, &before, import->bytes))
		ipc_show_again(import->shared);
	return r;
}

/*
 * The driver is asked, where it has to be. Until it has the memory or says no, what is held here may be what another
 * thread has just released: in the books, and nowhere else.
 */
static CUresult fetch(void *handle, CUmemAllocationHandleType type, struct import *import,
	CUmemGenericAllocationHandle *ret_handle, bool *ret_is_new)
{
	CUresult r;
	CHARGE_SCOPE();

	import_begin(handle, type, MARK_OF_MEMORY, import);
	r = import_again(import, ret_handle);
	*ret_is_new = r == CUDA_ERROR_NOT_FOUND;
	if (*ret_is_new)
		r = import_anew(import, type, ret_handle);
	import_end(import);
	if (r != CUDA_SUCCESS)
		import_undo(import);
	return r;
}

static CUresult import_memory(
	void *os_handle, CUmemAllocationHandleType type, CUmemGenericAllocationHandle *ret_handle)
{
	struct import import;
	bool is_new;
	CUresult r = fetch(os_handle, type, &import, ret_handle, &is_new);

	if (r != CUDA_SUCCESS || !is_new)
		return r;
	r = keep_imported(*ret_handle, &import);
	if (r != CUDA_SUCCESS) {
		/* What stays is charged as long as its shared allocation is held. */
		if (mapped_let_go(*ret_handle))
			import_undo(&import);
	}
	return r;
}

HOOK_BODY(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, handle, void *, os_handle,
	CUmemAllocationHandleType, type)
{
	CUmemGenericAllocationHandle made = 0;
	bool is_entered;
	CUresult r;

	HOOK_NEEDS_BOOKS(!handle, cuda.cuMemImportFromShareableHandle(handle, os_handle, type));
	is_entered = mapped_imports_enter();
	r = import_memory(os_handle, type, &made);
	mapped_imports_leave(is_entered);
	return HOOK_GIVE(r, handle, made);
}

HOOK_BODY(cuMemPoolExportToShareableHandle, void *, handle, CUmemoryPool, pool,
	CUmemAllocationHandleType, type, unsigned long long, flags)
{
	struct shared_name name;
	union shareable made;
	CUresult r;

	HOOK_NEEDS_BOOKS(!handle || !is_shareable(type),
		cuda.cuMemPoolExportToShareableHandle(handle, pool, type, flags));
	if (is_withheld(type))
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Until it is empty the driver still has a pool that the program has destroyed. */
	if (pools_is_ended(pool))
		return CUDA_ERROR_INVALID_VALUE;
	r = cuda.cuMemPoolExportToShareableHandle(&made, pool, type, flags);
	if (r != CUDA_SUCCESS)
		return r;
	name = name_of(type, &made);
	if (!pools_share(pool, fd_of(type, &made), &name))
		r = take_back(type, &made);
	return give_shareable(r, handle, type, &made);
}

/*
 * An imported pool allocates nothing, and what is in it is its maker's. This process holds the maker's
 * shared allocation until it ends, because pointers of the pool may outlive the pool's handle here. Where there is
 * none, nobody would be charged for the pool when its maker has ended.
 */
HOOK_BODY(cuMemPoolImportFromShareableHandle, CUmemoryPool *, pool, void *, handle,
	CUmemAllocationHandleType, type, unsigned long long, flags)
{
	struct import import;
	CUmemoryPool made = NULL;
	CUresult r;

	HOOK_NEEDS_BOOKS(!pool, cuda.cuMemPoolImportFromShareableHandle(pool, handle, type, flags));
	import_begin(handle, type, MARK_OF_POOL, &import);
	if (!import.is_shared && is_shareable(type)) {
		log_info("a pool is of no process of this slice, so it is not imported");
		import_end(&import);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pool_list_create_begin();
	r = cuda.cuMemPoolImportFromShareableHandle(&made, import.handle, type, flags);
	import_end(&import);
	if (r != CUDA_SUCCESS)
		import_undo(&import);
	else if (pools_add(made, NULL) < 0)
		log_debug("an imported pool is entered when it is used");
	pool_list_create_end();
	return HOOK_GIVE(r, pool, made);
}
