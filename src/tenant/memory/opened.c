/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other processes that this one opened.
 *
 * A table entry: key the pointer, a the context, b openings << 48 | units or joint << 16 | IS_JOINT |
 * ordinal. One lock guards each change of it as a whole.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/opened.h"

#include "base/lock.h"
#include "base/log.h"
#include "tenant/memory/contexts.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/shared.h"
#include "tenant/slice/table.h"

#define ONE_OPENING (UINT64_C(1) << 48)
#define IS_JOINT    UINT64_C(0x8000)

static struct lock opened_lock;
static struct table pointers;

static uint32_t amount(uint64_t b)
{
	return (uint32_t)(b >> 16);
}

static void give_back(uint64_t b)
{
	if (b & IS_JOINT)
		shared_let_go(amount(b), false);
	else
		charge_give_back(state_device((CUdevice)(b & 0xff)),
			(uint64_t)amount(b) * REGION_UNIT_BYTES, CHARGE_SHARED);
}

void opened_begin(const CUipcMemHandle *handle, struct opening *ret_opening)
{
	uint64_t key = shared_key(handle, sizeof(*handle));

	ret_opening->is_joint = shared_hold(key, &ret_opening->joint);
}

void opened_undo(const struct opening *opening)
{
	if (opening->is_joint)
		shared_let_go(opening->joint, false);
}

/* Charges what another slice made, whose size is known only now. */
static CUresult charge_foreign(CUdeviceptr pointer, struct charge *charge)
{
	struct device *device;
	size_t bytes = 0;
	CUresult r = state_current_device(&device);

	if (r == CUDA_SUCCESS)
		r = cuda.cuMemGetAddressRange_v2
			    ? cuda.cuMemGetAddressRange_v2(NULL, &bytes, pointer)
			    : CUDA_ERROR_NOT_FOUND;
	if (r == CUDA_SUCCESS)
		r = charge_reserve(
			device, round_up_u64(bytes, UINT64_C(0x200000)), CHARGE_SHARED, charge);
	if (r != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	log_info("memory of another slice is opened, and charged to this one as well",
		STR("device", device->uuid), U64("bytes", bytes));
	return CUDA_SUCCESS;
}

/* One more opening of a pointer that is open; false where it is not. */
static bool count_up(CUdeviceptr pointer)
{
	struct table_entry entry;
	LOCK_SCOPE(&opened_lock);

	return table_get(&pointers, pointer, &entry) == 0 &&
	       table_change_b(&pointers, pointer, entry.b, entry.b + ONE_OPENING) == 0;
}

static bool enter(CUdeviceptr pointer, uint64_t b)
{
	struct table_entry entry = {.key = pointer, .b = b + ONE_OPENING};
	CUcontext context = NULL;
	LOCK_SCOPE(&opened_lock);

	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	entry.a = (uintptr_t)contexts_owner(context);
	return table_put(&pointers, entry) == 0;
}

CUresult opened_keep(CUdeviceptr pointer, const struct opening *opening)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r = CUDA_SUCCESS;
	uint64_t b;

	if (count_up(pointer)) {
		opened_undo(opening);
		return CUDA_SUCCESS;
	}
	if (opening->is_joint) {
		b = (uint64_t)opening->joint << 16 | IS_JOINT;
	} else {
		r = charge_foreign(pointer, &charge);
		b = (uint64_t)charge.units << 16 |
		    (charge.device ? (uint64_t)charge.device->ordinal : 0);
	}
	if (r == CUDA_SUCCESS && !enter(pointer, b)) {
		log_error("no memory for our own tables, so memory is not opened");
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		cuda.cuIpcCloseMemHandle(pointer);
		opened_undo(opening);
	} else if (charge.device) {
		charge_take(&charge);
	}
	return r;
}

void opened_close_begin(CUdeviceptr pointer, struct opened *ret_opened)
{
	struct table_entry entry;
	LOCK_SCOPE(&opened_lock);

	*ret_opened = (struct opened){.pointer = 0};
	if (table_get(&pointers, pointer, &entry) != 0)
		return;
	if (entry.b >> 48 > 1) {
		ret_opened->is_counted =
			table_change_b(&pointers, pointer, entry.b, entry.b - ONE_OPENING) == 0;
		return;
	}
	if (table_take(&pointers, pointer, &entry) == 0)
		*ret_opened = (struct opened){.pointer = entry.key, .a = entry.a, .b = entry.b};
}

void opened_close_end(CUdeviceptr pointer, const struct opened *opened, bool is_closed)
{
	struct table_entry entry = {.key = opened->pointer, .a = opened->a, .b = opened->b};

	if (is_closed && opened->pointer)
		give_back(opened->b);
	else if (!is_closed && opened->is_counted && !count_up(pointer))
		log_warn("a charge stays in the books until the process ends");
	else if (!is_closed && opened->pointer && table_put(&pointers, entry) < 0)
		log_warn("a charge stays in the books until the process ends");
}

void opened_context_ended(struct device *device, CUcontext context)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_by_a(&pointers, (uintptr_t)context, &cursor, &entry) == 0)
		give_back(entry.b);
}

void opened_reset_after_fork(void)
{
	opened_lock = (struct lock)LOCK_INIT;
	table_forget(&pointers);
}
