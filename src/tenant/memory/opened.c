/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other processes that this one opened: the holdings of HOLDING_OPENED, whose references are the
 * openings.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/opened.h"

#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/ipc.h"
#include "tenant/slice/quota.h"

/* The program can write a handle's bytes, and a card's driver believes the size in them. */
static bool may_open_foreign(void)
{
	if (quota_may_import())
		return true;
	/* As ever before a refusal. */
	state_refresh_limits(true);
	return quota_may_import();
}

CUresult opened_begin(const CUipcMemHandle *handle, struct opening *ret_opening)
{
	struct shared_name name = ipc_name(handle);

	ret_opening->since = charge_since();
	ret_opening->current = current_since();
	ret_opening->is_shared = ipc_hold(&name, true, &ret_opening->shared);
	if (ret_opening->is_shared || may_open_foreign())
		return CUDA_SUCCESS;
	log_warn("a handle of memory that no process of this slice gave out is not opened; the "
		 "line \"imports any\" of the share lets it in (vgpu run --imports any)");
	return CUDA_ERROR_NOT_PERMITTED;
}

void opened_undo(const struct opening *opening)
{
	if (opening->is_shared)
		ipc_let_go(opening->shared, false);
}

/* Where the memory lies: it may be opened in a context of another device. */
static CUresult find_device(CUdeviceptr pointer, struct device **ret_device)
{
	int ordinal = -1;

	if (!cuda.cuPointerGetAttribute ||
		cuda.cuPointerGetAttribute(
			&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) != CUDA_SUCCESS ||
		ordinal < 0 || state_meet_device(ordinal, ret_device) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

/* What another slice made, whose size is known only now. */
static CUresult ask_for_size(CUdeviceptr pointer, struct device **ret_device, uint64_t *ret_bytes)
{
	size_t bytes = 0;
	CUresult r = find_device(pointer, ret_device);

	if (r == CUDA_SUCCESS)
		r = cuda.cuMemGetAddressRange_v2
			    ? cuda.cuMemGetAddressRange_v2(NULL, &bytes, pointer)
			    : CUDA_ERROR_NOT_FOUND;
	*ret_bytes = round_up_u64(bytes, UINT64_C(0x200000));
	return r == CUDA_SUCCESS ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult charge_foreign(CUdeviceptr pointer, struct charge *charge)
{
	struct device *device;
	uint64_t bytes;
	CUresult r = ask_for_size(pointer, &device, &bytes);

	if (r == CUDA_SUCCESS)
		r = charge_reserve(device, bytes, CHARGE_SHARED, charge);
	if (r != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	log_info("memory of another slice is opened, and counted for this one as well",
		STR("device", device->uuid), U64("bytes", bytes));
	return CUDA_SUCCESS;
}

/* Whether what is charged for the memory there is charged for what this opening has as well. */
static bool is_charged(
	CUdeviceptr pointer, const struct opening *opening, const struct holding *there)
{
	struct device *device;
	uint64_t bytes;

	if (opening->is_shared)
		return there->flags & HOLDING_SHARED && there->shared == opening->shared;
	return !(there->flags & HOLDING_SHARED) &&
	       ask_for_size(pointer, &device, &bytes) == CUDA_SUCCESS &&
	       there->device == device->ordinal &&
	       (uint64_t)there->units * REGION_UNIT_BYTES >= bytes;
}

/*
 * One more opening of what is there; or of other memory, in the place of what another thread has closed before it was entered there. The
 * driver alone knows what an address stands for then, so both stay charged.
 */
static CUresult enter_again(CUdeviceptr pointer, const struct opening *opening,
	const struct holding *there, struct charge *charge)
{
	CUresult r = CUDA_SUCCESS;

	if (is_charged(pointer, opening, there)) {
		opened_undo(opening);
		return CUDA_SUCCESS;
	}
	if (!opening->is_shared && !charge->device)
		r = charge_foreign(pointer, charge);
	if (r != CUDA_SUCCESS)
		return r;
	if (charge->device)
		ipc_open_foreign(charge->device, (int64_t)charge_take(charge));
	log_warn("memory was opened where other memory may be open, and stays counted until the "
		 "process ends");
	return CUDA_SUCCESS;
}

/* An opening that is not known as one more of the same context: the first, or beside another thread's. */
static CUresult enter(CUdeviceptr pointer, uint64_t life, const struct opening *opening,
	struct holding *ret_there)
{
	_cleanup_charge_ struct charge charge = {.kind = CHARGE_SHARED};
	CUresult r = opening->is_shared ? CUDA_SUCCESS : charge_foreign(pointer, &charge);
	struct holding holding = holding_of(&charge, life, 0);
	struct device *device = charge.device;
	bool is_new;

	if (r != CUDA_SUCCESS)
		return r;
	if (opening->is_shared) {
		holding.shared = opening->shared;
		holding.flags = HOLDING_SHARED;
	} else if (device) {
		holding.flags = HOLDING_OPEN_FOREIGN;
	}
	if (holding_put_or_refer(
		    HOLDING_OPENED, pointer, holding, opening->since, &is_new, ret_there) != 0) {
		log_error("no memory for our own tables, so memory is not opened");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!is_new)
		return enter_again(pointer, opening, ret_there, &charge);
	if (device)
		ipc_open_foreign(device, (int64_t)charge_take(&charge));
	return CUDA_SUCCESS;
}

CUresult opened_keep(CUdeviceptr pointer, const struct opening *opening)
{
	_cleanup_charge_ struct charge charge = {.kind = CHARGE_SHARED};
	struct holding there = {.serial = 0};
	uint64_t life = contexts_life_current();
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!current_is_same(opening->current)) {
		log_warn("another context was made current within an opening, so it is refused");
		cuda.cuIpcCloseMemHandle(pointer);
		opened_undo(opening);
		return r;
	}
	switch (holding_refer(HOLDING_OPENED, pointer, life, &there)) {
	case 0:
		r = enter_again(pointer, opening, &there, &charge);
		break;
	case HOLDING_E_ABSENT:
		r = enter(pointer, life, opening, &there);
	}
	if (r != CUDA_SUCCESS) {
		cuda.cuIpcCloseMemHandle(pointer);
		if (there.serial)
			holding_drop(HOLDING_OPENED, pointer, there.serial);
		opened_undo(opening);
	}
	return r;
}
