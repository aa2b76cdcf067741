/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory.
 *
 * The room of a new context is part of what the context was measured to take, so only what is more
 * (or less) is booked here: table entry key the life of a context, a the stack limit of the beginning, b the bytes
 * booked, which are never below zero.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/local.h"

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/memory/contexts.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/table.h"

#define LOCAL_STEP_BYTES UINT64_C(0x200000)

/* What a thread has from the beginning, where the driver does not say (H200, driver 580). */
#define FIRST_STACK_BYTES 1024u

static struct table contexts;
static struct lock book_lock; /* asking and booking are one step; the driver answers in 40 ns */

static uint64_t attribute(const struct device *d, CUdevice_attribute which)
{
	int value = 0;

	if (!cuda.cuDeviceGetAttribute ||
		cuda.cuDeviceGetAttribute(&value, which, d->ordinal) != CUDA_SUCCESS || value < 0)
		return 0;
	return (uint64_t)value;
}

static uint64_t room_bytes(const struct device *d, uint64_t frame_bytes)
{
	uint64_t threads = attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
			   attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);

	return round_up_u64(frame_bytes * threads, LOCAL_STEP_BYTES);
}

static uint64_t stack_bytes(void)
{
	size_t bytes;

	return cuda.cuCtxGetLimit && cuda.cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS
		       ? bytes
		       : 0;
}

uint64_t local_frame_bytes(CUfunction function)
{
	const CUfunction_attribute which = CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
	CUresult r = CUDA_ERROR_NOT_FOUND;
	CUdevice ordinal;
	int bytes = 0;

	if (cuda.cuFuncGetAttribute)
		r = cuda.cuFuncGetAttribute(&bytes, which, function);
	if (r != CUDA_SUCCESS && cuda.cuKernelGetAttribute &&
		cuda.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS)
		r = cuda.cuKernelGetAttribute(&bytes, which, (CUkernel)function, ordinal);
	return r == CUDA_SUCCESS && bytes > 0 ? (uint64_t)bytes : 0;
}

static bool find_current(uint64_t *ret_life, struct device **ret_device)
{
	CUcontext context = NULL;

	if (cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
		return false;
	*ret_life = contexts_life_of(context);
	if (*ret_life == 0)
		*ret_life = UINT64_MAX; /* not in the books, and so never ends */
	return state_enter() != STATE_OPEN || state_current_device(ret_device) == CUDA_SUCCESS;
}

/* The context's entry, begun if it is new: with the limit that it has before its first change. */
static bool find_or_begin(uint64_t life, struct table_entry *ret_entry)
{
	if (table_get(&contexts, life, ret_entry) == 0)
		return true;
	*ret_entry = (struct table_entry){.key = life, .a = stack_bytes()};
	if (ret_entry->a == 0 || ret_entry->a > FIRST_STACK_BYTES)
		ret_entry->a = FIRST_STACK_BYTES;
	return table_put(&contexts, *ret_entry) == 0;
}

CUresult local_begin(uint64_t frame_bytes, struct charge *ret_charge)
{
	uint64_t stack = stack_bytes();
	struct table_entry entry;
	struct device *device;
	uint64_t life;
	bool is_known;

	if (frame_bytes <= stack || state_enter() == STATE_ASIDE || !find_current(&life, &device))
		return CUDA_SUCCESS;
	if (state_enter() == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lock_enter(&book_lock);
	FAULT("local: locked");
	is_known = find_or_begin(life, &entry);
	lock_leave(&book_lock);
	if (!is_known) {
		log_error("no memory for our own tables, so local memory is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return charge_reserve(device, room_bytes(device, frame_bytes) - room_bytes(device, stack),
		CHARGE_LOCAL, ret_charge);
}

void local_end(struct charge *charge)
{
	struct table_entry entry;
	struct device *device;
	uint64_t first, now, stack;
	uint64_t life;

	if (state_enter() != STATE_OPEN || !find_current(&life, &device))
		return;
	LOCK_SCOPE(&book_lock);
	if (table_get(&contexts, life, &entry) != 0)
		return;
	first = room_bytes(device, entry.a);
	stack = stack_bytes();
	now = room_bytes(device, stack);
	now = now > first ? now - first : 0;
	/* Without an answer what was reserved stays. */
	if (stack == 0)
		now = entry.b + (uint64_t)charge->units * REGION_UNIT_BYTES;
	if (!charge->device)
		*charge = (struct charge){.device = device, .kind = CHARGE_LOCAL};
	FAULT("local: asked");
	charge_commit(charge, (int64_t)(now - entry.b));
	FAULT("local: booked");
	entry.b = now;
	if (table_put(&contexts, entry) < 0)
		log_warn("memory stays counted until the process ends");
}

void local_life_ended(struct device *device, uint64_t life)
{
	struct table_entry entry;

	if (table_take(&contexts, life, &entry) == 0)
		charge_give_back(device, entry.b, CHARGE_LOCAL);
}

void local_reset_after_fork(void)
{
	table_forget(&contexts);
	book_lock = (struct lock)LOCK_INIT;
}
