/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: streams, green contexts, and limits of a context. */
#include "base/scratch.h"
#include "tenant/memory/code.h"
#include "tenant/memory/code_pins.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/graph_growth.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/current.h"
#include "tenant/memory/graph_frames.h"
#include "tenant/memory/local.h"
#include "tenant/memory/runtime.h"

/*
 * A stream's queues take 2 MiB at every fourth one, now and then 4; a green context takes 4 to 6
 * (H200, driver 580). Destroying them gives nothing back before the context ends.
 */
#define STREAM_BOUND_BYTES UINT64_C(0x400000)
#define GREEN_BOUND_BYTES  UINT64_C(0x800000)

#define CREATE(symbol, ...)                                                                        \
	static CUresult make_##symbol(HOOK_PARAMS(CUstream *, stream, __VA_ARGS__))                \
	{                                                                                          \
		struct guard guard;                                                                \
		CUstream made = NULL;                                                              \
		CUresult r = guard_begin_current(STREAM_BOUND_BYTES, &guard);                      \
                                                                                                   \
		if (r != CUDA_SUCCESS)                                                             \
			return r;                                                                  \
		guard.is_bounded = true;                                                           \
		r = cuda.symbol(stream ? &made : NULL, HOOK_NAMES(__VA_ARGS__));                   \
		if (r == CUDA_SUCCESS)                                                             \
			gate_stream_made(made);                                                    \
		guard_end(&guard);                                                                 \
		return HOOK_GIVE(r, stream, made);                                                 \
	}                                                                                          \
	HOOK_BODY(symbol, CUstream *, stream, __VA_ARGS__)                                         \
	{                                                                                          \
		return CAPTURE_CHANGE(                                                             \
			CUDA_ERROR_OUT_OF_MEMORY, make_##symbol(stream, HOOK_NAMES(__VA_ARGS__))); \
	}

CREATE(cuStreamCreate, unsigned int, flags)
CREATE(cuStreamCreateWithPriority, unsigned int, flags, int, priority)

/* In the green context, which need not be current: what is current may be another device's, or nothing. */
static CUresult create_green_stream(
	CUcontext context, CUstream *stream, CUgreenCtx green, unsigned int flags, int priority)
{
	struct guard guard;
	bool is_entered = current_enter(context);
	CUcontext current = context;
	CUstream made = NULL;
	CUresult r = is_entered ? CUDA_SUCCESS : cuda.cuCtxGetCurrent(&current);

	if (r == CUDA_SUCCESS && current != context)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS)
		r = guard_begin_current(STREAM_BOUND_BYTES, &guard);
	if (r == CUDA_SUCCESS) {
		guard.is_bounded = true;
		r = cuda.cuGreenCtxStreamCreate(&made, green, flags, priority);
		if (r == CUDA_SUCCESS)
			gate_stream_made(made);
		guard_end(&guard);
	}
	current_leave(is_entered);
	return HOOK_GIVE(r, stream, made);
}

HOOK_BODY(cuGreenCtxStreamCreate, CUstream *, stream, CUgreenCtx, green, unsigned int, flags, int,
	priority)
{
	CUcontext context = NULL;
	CUresult r;

	if (state_enter() == STATE_ASIDE || !stream || !green)
		return cuda.cuGreenCtxStreamCreate(stream, green, flags, priority);
	r = cuda.cuCtxFromGreenCtx ? cuda.cuCtxFromGreenCtx(&context, green)
				   : CUDA_ERROR_NOT_SUPPORTED;
	if (r != CUDA_SUCCESS)
		return r;
	contexts_green_seen(green, context);
	return CAPTURE_CHANGE(CUDA_ERROR_OUT_OF_MEMORY,
		create_green_stream(context, stream, green, flags, priority));
}

HOOK_FORMS(cuStreamDestroy, _v2, CUstream, stream)
{
	struct stream_end end;
	CUresult r;

	gate_stream_ends(stream, &end);
	graph_growth_stream_ends();
	r = real(stream);
	gate_stream_ended(&end, r);
	return r;
}

/*
 * A green context lives in its device's primary context, and keeps that alive. So that each is booked
 * for itself, the primary one is there before the green one comes.
 */
static CUresult hold_primary(struct device *device)
{
	struct primary_call call;
	CUcontext primary;
	CUresult r = contexts_primary_begin(device, PRIMARY_RETAIN, &call);

	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuDevicePrimaryCtxRetain(&primary, device->ordinal);
	return contexts_primary_end(&call, r, r == CUDA_SUCCESS ? primary : NULL);
}

/* Another thread may have let go of it meanwhile, so that it ends: not while a call uses code of it. */
static void let_go_of_primary(struct device *device)
{
	struct primary_call call;
	uint64_t life;
	CUresult r;
	CHARGE_SCOPE();

	if (contexts_primary_begin(device, PRIMARY_RELEASE, &call) != CUDA_SUCCESS)
		return;
	life = contexts_primary_at_stake(&call);
	r = code_pins_unload_begin(life, CODE_PINS_WAIT_NS);
	if (r != CUDA_SUCCESS) {
		contexts_primary_end(&call, r, NULL);
		return;
	}
	r = cuda.cuDevicePrimaryCtxRelease_v2(device->ordinal);
	contexts_primary_end(&call, r, NULL);
	code_pins_unload_end(life, contexts_primary_has_ended(&call, life));
}

/* The primary context is current meanwhile, as the guard asks for what is free in it. */
static CUresult create_green(struct device *device, CUcontext primary, CUgreenCtx *green,
	CUdevResourceDesc description, unsigned int flags)
{
	struct guard guard;
	CUcontext popped;
	CUresult r = cuda.cuCtxPushCurrent_v2(primary);

	if (r != CUDA_SUCCESS)
		return r;
	r = guard_begin(device, GREEN_BOUND_BYTES, &guard);
	if (r == CUDA_SUCCESS) {
		guard.is_bounded = true;
		r = cuda.cuGreenCtxCreate(green, description, device->ordinal, flags);
		guard_end(&guard);
	}
	cuda.cuCtxPopCurrent_v2(&popped);
	return r;
}

/* Nobody ends the primary context meanwhile: the driver would make another one, of which nothing is in the books. */
static CUresult create_green_in_primary(
	struct device *device, CUgreenCtx *green, CUdevResourceDesc description, unsigned int flags)
{
	struct primary_call call;
	CUcontext primary;
	CUresult r = contexts_primary_begin(device, PRIMARY_RETAIN, &call), retained;

	if (r != CUDA_SUCCESS)
		return r;
	r = retained = cuda.cuDevicePrimaryCtxRetain(&primary, device->ordinal);
	if (retained == CUDA_SUCCESS)
		r = create_green(device, primary, green, description, flags);
	r = contexts_primary_end(&call, r, retained == CUDA_SUCCESS ? primary : NULL);
	if (retained == CUDA_SUCCESS)
		let_go_of_primary(device);
	return r;
}

HOOK_BODY(cuGreenCtxCreate, CUgreenCtx *, green, CUdevResourceDesc, description, CUdevice, ordinal,
	unsigned int, flags)
{
	struct device *device;
	CUresult r = contexts_enter(ordinal, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!device || !green || !description)
		return cuda.cuGreenCtxCreate(green, description, ordinal, flags);
	r = hold_primary(device);
	if (r != CUDA_SUCCESS)
		return r;
	r = create_green_in_primary(device, green, description, flags);
	let_go_of_primary(device);
	return r;
}

HOOK_BODY(cuGreenCtxDestroy, CUgreenCtx, green)
{
	CUcontext context = NULL, primary = NULL;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() != STATE_OPEN)
		return cuda.cuGreenCtxDestroy(green);
	SCRATCH_READY(struct green_end, end);
	if (!end)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (cuda.cuCtxFromGreenCtx && cuda.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS)
		primary = contexts_primary_of(context);
	if (context)
		gate_green_ends(context, primary, false);
	contexts_green_destroy_begin(end);
	r = cuda.cuGreenCtxDestroy(green);
	if (r == CUDA_SUCCESS && context)
		gate_green_ends(context, primary, true);
	contexts_green_destroy_end(end, green, r == CUDA_SUCCESS);
	return r;
}

HOOK_BODY(cuCtxFromGreenCtx, CUcontext *, context, CUgreenCtx, green)
{
	CUcontext made = NULL;
	CUresult r = cuda.cuCtxFromGreenCtx(context ? &made : NULL, green);

	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		contexts_green_seen(green, made);
	return HOOK_GIVE(r, context, made);
}

/* A smaller limit gives room back: nobody may measure meanwhile what his own call took. */
static CUresult set_stack_limit(size_t value, struct charge *charge)
{
	CUresult r;
	CHARGE_SCOPE();

	r = cuda.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value);
	local_end(charge);
	return r;
}

/* Stacks get their room at once; heap and printf buffer when something that uses them is loaded. */
HOOK_BODY(cuCtxSetLimit, CUlimit, limit, size_t, value)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;
	CURRENT_STAYS();

	if (limit != CU_LIMIT_STACK_SIZE)
		return runtime_set_limit(limit, value);
	r = local_begin(value, &charge);
	if (r != CUDA_SUCCESS)
		return r;
	if (local_has_more_than(value))
		graph_frames_lower();
	if (!code_pins_room_begin())
		return CUDA_ERROR_NOT_READY;
	r = set_stack_limit(value, &charge);
	marks_room_end();
	return r;
}
