/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory.
 *
 * The room of a new context is part of what the context was measured to take, so only what is more
 * (or less) is booked here: table entry key the life of a context, a the stack limit of the beginning, b the bytes
 * booked, which are never below zero, c how many calls are under way that need such room, d whether what is booked is
 * an estimate.
 *
 * While one is under way, another thread may lower the limit, by which the driver gives room back and takes it again
 * for the first. So what is booked falls only when no such call is left. Until then it is an estimate: the driver may
 * have less, which would hide as much that nobody names. So it counts as a call under way (charge.h), and no comparison
 * is exact until the last call has made it what the driver says.
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

/* Of a context that is not in the books, or is just being detached: its room is its own, and never ends. Lives are counted from 1. */
#define UNKNOWN_LIFE (UINT64_C(1) << 63)

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

bool local_has_more_than(uint64_t frame_bytes)
{
	return stack_bytes() > frame_bytes;
}

static bool find_current(uint64_t *ret_life, struct device **ret_device)
{
	CUcontext context = NULL;

	if (cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
		return false;
	*ret_life = contexts_life_of(context);
	if (*ret_life == 0)
		*ret_life = UNKNOWN_LIFE | (uintptr_t)context;
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

/* Counts a call in, and tells what is booked; false without memory. */
static bool call_in(uint64_t life, struct table_entry *ret_entry)
{
	LOCK_SCOPE(&book_lock);

	FAULT("local: locked");
	if (!find_or_begin(life, ret_entry))
		return false;
	ret_entry->c++;
	return table_put(&contexts, *ret_entry) == 0;
}

CUresult local_begin(uint64_t frame_bytes, struct charge *ret_charge)
{
	struct table_entry entry;
	struct device *device;
	uint64_t current = current_since(), life, wanted, had;
	CUresult r = CUDA_SUCCESS;

	if (frame_bytes <= FIRST_STACK_BYTES || state_enter() == STATE_ASIDE ||
		!find_current(&life, &device))
		return CUDA_SUCCESS;
	if (state_enter() == STATE_CLOSED)
		return frame_bytes <= stack_bytes() ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (!call_in(life, &entry)) {
		log_error("no memory for our own tables, so local memory is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	wanted = room_bytes(device, frame_bytes);
	had = room_bytes(device, entry.a) + entry.b;
	*ret_charge = (struct charge){.device = device, .kind = CHARGE_LOCAL};
	if (wanted > had)
		r = charge_reserve(device, wanted - had, CHARGE_LOCAL, ret_charge);
	ret_charge->current = current;
	ret_charge->life = life;
	if (r != CUDA_SUCCESS)
		local_end(ret_charge);
	return r;
}

/*
 * A charge with a device belongs to a call that was counted in. Where another thread has destroyed the context, its
 * room is gone with it. Where another context was made current meanwhile, nobody knows what the call took in which.
 */
void local_end(struct charge *charge)
{
	uint64_t since = charge->device ? charge->current : current_since();
	uint64_t first, now, stack, life;
	struct table_entry entry;
	struct device *device;
	bool is_estimate, was_estimate, is_told;

	if (state_enter() != STATE_OPEN) {
		charge_undo(charge);
		return;
	}
	LOCK_SCOPE(&book_lock);
	is_told = find_current(&life, &device);
	stack = stack_bytes();
	if (!current_is_same(since)) {
		is_told = charge->device;
		device = charge->device;
		life = charge->life;
		stack = 0;
	}
	if (!is_told) {
		charge_undo(charge);
		return;
	}
	if (table_get(&contexts, life, &entry) != 0) {
		charge_undo(charge);
		return;
	}
	if (charge->device && entry.c > 0)
		entry.c--;
	first = room_bytes(device, entry.a);
	now = room_bytes(device, stack);
	now = now > first ? now - first : 0;
	was_estimate = entry.d;
	is_estimate = stack == 0 ? was_estimate : entry.c > 0 && now < entry.b;
	if (is_estimate)
		now = entry.b;
	/* Without an answer what was reserved stays. */
	if (stack == 0)
		now = entry.b + (uint64_t)charge->units * REGION_UNIT_BYTES;
	if (!charge->device)
		*charge = (struct charge){.device = device, .kind = CHARGE_LOCAL};
	FAULT("local: asked");
	if (is_estimate && !was_estimate)
		charge_enter();
	charge_commit(charge, (int64_t)(now - entry.b));
	if (was_estimate && !is_estimate)
		charge_leave(NULL);
	FAULT("local: booked");
	entry.b = now;
	entry.d = is_estimate;
	if (table_put(&contexts, entry) < 0)
		log_warn("memory stays counted until the process ends");
}

void local_life_ended(struct device *device, uint64_t life)
{
	struct table_entry entry;
	/* A call that ends now books the change from what it has read, and enters that. */
	LOCK_SCOPE(&book_lock);

	if (table_take(&contexts, life, &entry) != 0)
		return;
	charge_give_back(device, entry.b, CHARGE_LOCAL);
	if (entry.d)
		charge_leave(NULL);
}

void local_reset_after_fork(void)
{
	table_forget(&contexts);
	book_lock = (struct lock)LOCK_INIT;
}
