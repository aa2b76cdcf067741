/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports and imports of created memory, apart from its references in this process (mapped.c): whose charge it is where several processes
 * have it, and how large it is where nothing tells.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/mapped_share.h"

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/ipc.h"

/* Puts the shared allocation's mark on one more descriptor; the first one gives it its mark. */
static bool mark_descriptor(unsigned shared, int fd)
{
	uint64_t known = atomic_load(&state.region.file->own.shared[shared].mark);
	struct mark mark = {
		.id = known ? known : mark_new_id(MARK_OF_MEMORY), .steps = ipc_steps(shared)};

	return mark_set(fd, mark) == 0 && (known || ipc_set_mark(shared, mark.id, fd));
}

CUresult mapped_export_begin(CUmemGenericAllocationHandle handle, struct mapped_export *ret_export)
{
	struct ipc_memory memory = {.name.key = mark_new_id(MARK_OF_MEMORY), .fd = -1};
	struct mapped_reference *reference = &ret_export->reference;
	CUresult r = mapped_refer_begin(handle, reference);

	ret_export->is_shared = false;
	if (r != CUDA_SUCCESS || !reference->serial || reference->is_object || !memory.name.key)
		return r;
	if (!holding_share(HOLDING_CREATED, handle, &memory, 0, &ret_export->shared))
		return r;
	/* From here on the shared allocation itself is held. The pin stays: the handle may be other memory's when the driver is asked. */
	ret_export->is_shared = true;
	ipc_hold_again(ret_export->shared);
	return r;
}

/*
 * A descriptor without a mark would keep the memory when nobody is charged for it any more; so would one of memory that has got the handle
 * meanwhile.
 */
static bool end_shared(
	const struct mapped_export *export, bool is_made, int fd, const struct shared_name *name)
{
	const struct mapped_reference *reference = &export->reference;
	bool is_right =
		holding_unpin(HOLDING_CREATED, reference->handle, reference->serial) || !is_made;

	if (is_right && is_made)
		is_right = (fd >= 0 ? mark_descriptor(export->shared, fd)
				    : ipc_set_name(export->shared, name)) ||
			   fd < 0;
	ipc_let_go(export->shared, false);
	return is_right;
}

bool mapped_export_end(
	const struct mapped_export *export, bool is_made, int fd, const struct shared_name *name)
{
	const struct mapped_reference *reference = &export->reference;
	bool is_known = true;

	FAULT("mapped: exported");
	if (reference->is_object && is_made)
		return holding_stay_by_pin(HOLDING_CREATED, reference->handle, reference->serial);
	if (export->is_shared) {
		is_known = end_shared(export, is_made, fd, name);
	} else if (reference->serial) {
		/* What finds no place in the region may outlive this process, and nobody would be charged for it. */
		holding_unpin(HOLDING_CREATED, reference->handle, reference->serial);
		if (is_made && fd >= 0)
			log_info("the region has no place for exported memory, so it is not "
				 "exported");
		return !is_made || fd < 0;
	} else {
		is_known = mapped_refer_end(reference, is_made);
	}
	if (!is_known)
		log_error("a descriptor cannot be marked, so memory is not exported");
	return is_known;
}

/* The driver may take its time to import; a call that does not come back is not waited for. */
#define IMPORT_WAIT_NS UINT64_C(10000000000)
static struct lock imports_lock;

bool mapped_imports_enter(void)
{
	return patience_lock(&imports_lock, IMPORT_WAIT_NS);
}

void mapped_imports_leave(bool is_entered)
{
	if (is_entered)
		lock_leave(&imports_lock);
}

/* Whether what is charged for the memory there is charged for what was imported as well. */
static bool is_charged(const struct holding *imported, const struct holding *there)
{
	if (imported->flags & HOLDING_OBJECT)
		return true;
	if (imported->flags & HOLDING_SHARED)
		return there->flags & HOLDING_SHARED && there->shared == imported->shared;
	return !(there->flags & HOLDING_SHARED) && there->device == imported->device &&
	       there->units >= imported->units;
}

/*
 * Where the handle is known it is one more reference, and *ret_is_charged says whether what it has is charged for already. Else it is that of other
 * memory by now, as another thread has released what was imported, or what is there has ended unseen. The driver alone knows what a handle
 * stands for then, so both stay charged.
 */
static CUresult keep_imported(CUmemGenericAllocationHandle handle, struct holding holding,
	uint64_t since, bool *ret_is_charged)
{
	struct holding there;
	bool is_new;

	*ret_is_charged = false;
	if (holding_put_or_refer(HOLDING_CREATED, handle, holding, since, &is_new, &there) != 0) {
		log_error("no memory for our own tables, so an import is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (is_new)
		return CUDA_SUCCESS;
	*ret_is_charged = is_charged(&holding, &there);
	if (!*ret_is_charged)
		log_warn("memory was imported where other memory may be known, and stays counted "
			 "until the process ends");
	return CUDA_SUCCESS;
}

CUresult mapped_keep_shared(CUmemGenericAllocationHandle handle, unsigned shared, uint64_t since)
{
	struct holding holding = {.references = 1, .shared = shared, .flags = HOLDING_SHARED};
	bool is_charged_for;
	CUresult r = keep_imported(handle, holding, since, &is_charged_for);

	/* The same handle again: one hold of ours is enough for all of its references. */
	if (r == CUDA_SUCCESS && is_charged_for)
		ipc_let_go(shared, false);
	return r;
}

CUresult mapped_keep_object(CUmemGenericAllocationHandle handle, uint64_t since)
{
	struct holding holding = {.references = 1, .flags = HOLDING_OBJECT | HOLDING_MAY_STAY};
	bool is_charged_for;

	return keep_imported(handle, holding, since, &is_charged_for);
}

CUresult mapped_keep_foreign(
	CUmemGenericAllocationHandle handle, struct device *device, uint64_t bytes, uint64_t since)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	bool is_charged_for = true;
	CUresult r = charge_reserve(device, bytes, CHARGE_SHARED, &charge);

	if (r == CUDA_SUCCESS)
		r = keep_imported(
			handle, holding_of(&charge, 0, HOLDING_FOREIGN), since, &is_charged_for);
	if (r == CUDA_SUCCESS && !is_charged_for)
		charge_take(&charge);
	return r;
}

/* What stayed mapped would be held when the program has let go of it. */
static void unmap(CUdeviceptr at, uint64_t bytes)
{
	for (unsigned i = 0; i < MAPPED_END_TRIES; i++)
		if (cuda.cuMemUnmap(at, bytes) == CUDA_SUCCESS)
			return;
	log_error("memory that was mapped for a moment stays mapped", U64("bytes", bytes));
}

/* Whether just so much is mapped, in a range that is larger by a step. */
static bool can_map(CUmemGenericAllocationHandle handle, CUdeviceptr at, uint64_t bytes)
{
	if (cuda.cuMemMap(at, bytes, 0, handle, 0) != CUDA_SUCCESS)
		return false;
	unmap(at, bytes);
	return true;
}

/* The first size of those from least_bytes to most_bytes that it is mapped as, and not as a larger one, too; or 0. */
static uint64_t find_size(
	CUmemGenericAllocationHandle handle, uint64_t least_bytes, uint64_t most_bytes)
{
	uint64_t bytes = least_bytes, range_bytes = most_bytes + MAPPING_STEP_BYTES;
	CUdeviceptr at;

	if (!least_bytes || !cuda.cuMemAddressReserve || !cuda.cuMemAddressFree ||
		cuda.cuMemAddressReserve(&at, range_bytes, 0, 0, 0) != CUDA_SUCCESS)
		return 0;
	while (bytes <= most_bytes &&
		(!can_map(handle, at, bytes) || can_map(handle, at, bytes + MAPPING_STEP_BYTES)))
		bytes += MAPPING_STEP_BYTES;
	cuda.cuMemAddressFree(at, range_bytes);
	return bytes <= most_bytes ? bytes : 0;
}

uint64_t mapped_measure(
	CUmemGenericAllocationHandle handle, const struct device *device, uint64_t told_bytes)
{
	/* relaxed: as in charge.c */
	uint32_t limit = atomic_load_explicit(&device->limit_units, memory_order_relaxed);
	uint64_t found = find_size(handle, told_bytes, told_bytes);
	size_t most = 0;

	if (found || !cuda.cuDeviceTotalMem_v2 ||
		cuda.cuDeviceTotalMem_v2(&most, device->ordinal) != CUDA_SUCCESS)
		return found;
	if (limit != LEDGER_NO_LIMIT && (uint64_t)limit * REGION_UNIT_BYTES < most)
		most = (size_t)limit * REGION_UNIT_BYTES;
	return find_size(handle, MAPPING_STEP_BYTES, most & ~(MAPPING_STEP_BYTES - 1));
}

/* Another reference of the program's to what is mapped there, if that is still this handle's. */
static bool retain_at(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
	CUmemGenericAllocationHandle retained;

	if (cuda.cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)at) != CUDA_SUCCESS)
		return false;
	if (retained == handle)
		return true;
	mapped_let_go(retained);
	return false;
}

/* The same of what is not mapped: the driver retains a handle by an address alone. */
static bool retain_unmapped(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
	bool is_retained = false;
	CUdeviceptr at;

	if (cuda.cuMemAddressReserve(&at, bytes, 0, 0, 0) != CUDA_SUCCESS)
		return false;
	if (cuda.cuMemMap(at, bytes, 0, handle, 0) == CUDA_SUCCESS) {
		is_retained = retain_at(at, handle);
		unmap(at, bytes);
	}
	cuda.cuMemAddressFree(at, bytes);
	return is_retained;
}

static bool retain(const struct mapped_reference *reference, uint64_t bytes)
{
	CUdeviceptr at;

	return (mapped_find_of(reference, &at) && retain_at(at, reference->handle)) ||
	       retain_unmapped(reference->handle, bytes);
}

CUresult mapped_import_again(unsigned shared, CUmemGenericAllocationHandle *ret_handle)
{
	uint64_t bytes = ipc_steps(shared) * MARK_STEP_BYTES;
	struct mapped_reference reference;
	struct holding holding;
	bool is_retained, is_there;
	uint64_t handle;

	/* Without these a driver gives no reference to what it has not mapped. */
	if (!cuda.cuMemRetainAllocationHandle || !cuda.cuMemAddressReserve ||
		!cuda.cuMemAddressFree)
		return CUDA_ERROR_NOT_FOUND;
	if (holding_pin_shared(HOLDING_CREATED, shared, &handle, &holding) != 0)
		return CUDA_ERROR_NOT_FOUND;
	reference = (struct mapped_reference){
		.handle = handle, .serial = holding.serial, .pin = holding.serial};
	FAULT("mapped: pinned");
	is_retained = retain(&reference, bytes);
	is_there = mapped_refer_end(&reference, is_retained);
	if (!is_there)
		mapped_let_go(reference.handle);
	if (!is_retained || !is_there)
		return is_there ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_FOUND;
	*ret_handle = reference.handle;
	return CUDA_SUCCESS;
}

void mapped_share_reset_after_fork(void)
{
	imports_lock = (struct lock)LOCK_INIT;
}
