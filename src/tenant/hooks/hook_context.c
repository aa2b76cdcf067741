/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the beginning, and contexts. */
#include "tenant/driver/capture.h"
#include "tenant/driver/current.h"
#include "tenant/memory/code_pins.h"
#include "tenant/memory/contexts.h"
#include "tenant/hooks/hook.h"

HOOK_BODY(cuInit, unsigned int, flags)
{
	CUresult r;

	state_driver_begins();
	r = cuda.cuInit(flags);
	state_driver_begun(r == CUDA_SUCCESS);

	/* A process of the slice is to be seen in it from its first use of CUDA on. */
	if (r == CUDA_SUCCESS)
		state_enter();
	return r;
}

static CUresult retain_primary(struct device *device, CUcontext *ret_context)
{
	struct primary_call call;
	CUresult r = contexts_primary_begin(device, PRIMARY_RETAIN, &call);

	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuDevicePrimaryCtxRetain(ret_context, device->ordinal);
	return contexts_primary_end(&call, r, r == CUDA_SUCCESS ? *ret_context : NULL);
}

HOOK_BODY(cuDevicePrimaryCtxRetain, CUcontext *, context, CUdevice, ordinal)
{
	struct device *device;
	CUcontext made = NULL;
	CUresult r = contexts_enter(ordinal, &device);

	if (r != CUDA_SUCCESS || !device || !context)
		return r == CUDA_SUCCESS ? cuda.cuDevicePrimaryCtxRetain(context, ordinal) : r;
	r = CAPTURE_CHANGE(CUDA_ERROR_OUT_OF_MEMORY, retain_primary(device, &made));
	return HOOK_GIVE(r, context, made);
}

/*
 * Longest wait for calls that use code of a context that is to end. Nobody may have one there then, by CUDA's rules, and a program's own end is not to be
 * held up for long.
 */
#define END_WAIT_NS UINT64_C(10000000000)

/* A call that may end the primary context. */
static CUresult end_primary(CUresult (*real)(CUdevice), CUdevice ordinal, enum primary_kind kind)
{
	struct primary_call call;
	struct device *device;
	uint64_t life;
	bool is_begun;
	CUresult r;

	if (state_enter() != STATE_OPEN || state_meet_device(ordinal, &device) != 0)
		return real(ordinal);
	r = contexts_primary_begin(device, kind, &call);
	if (r != CUDA_SUCCESS)
		return r;
	life = contexts_primary_at_stake(&call);
	r = code_pins_unload_begin(life, END_WAIT_NS);
	is_begun = r == CUDA_SUCCESS;
	if (is_begun)
		r = real(ordinal);
	r = contexts_primary_end(&call, r, NULL);
	if (is_begun)
		code_pins_unload_end(life, contexts_primary_has_ended(&call, life));
	return r;
}

HOOK_FORMS(cuDevicePrimaryCtxRelease, _v2, CUdevice, ordinal)
{
	CHARGE_SCOPE();

	return end_primary(real, ordinal, PRIMARY_RELEASE);
}

HOOK_FORMS(cuDevicePrimaryCtxReset, _v2, CUdevice, ordinal)
{
	CHARGE_SCOPE();

	return end_primary(real, ordinal, PRIMARY_RESET);
}

/* A way to make a context: the driver's call, with the arguments behind the context. */
#define MAKE(real, ...)                                                                         \
	{                                                                                       \
		_cleanup_charge_ struct charge charge = CHARGE_NULL;                            \
		_cleanup_making_ bool is_making = false;                                        \
		CUcontext made = NULL;                                                          \
		CUresult r;                                                                     \
                                                                                                \
		if (!current_may_change())                                                      \
			return CUDA_ERROR_NOT_PERMITTED;                                        \
		CURRENT_SCOPE();                                                                \
		if (!context) /* the driver refuses it */                                       \
			return real(context, __VA_ARGS__);                                      \
		r = before_making(ordinal, &charge, &is_making);                                \
		if (r == CUDA_SUCCESS)                                                          \
			r = CAPTURE_CHANGE(CUDA_ERROR_OUT_OF_MEMORY, real(&made, __VA_ARGS__)); \
		if (r == CUDA_SUCCESS)                                                          \
			r = after_making(made, &charge);                                        \
		return HOOK_GIVE(r, context, made);                                             \
	}

static CUresult before_making(CUdevice ordinal, struct charge *ret_charge, bool *is_making)
{
	struct device *device;
	CUresult r = contexts_enter(ordinal, &device);

	if (r != CUDA_SUCCESS || state_enter() != STATE_OPEN)
		return r;
	r = contexts_make_begin();
	*is_making = r == CUDA_SUCCESS;
	return *is_making && device ? contexts_reserve(device, ret_charge) : r;
}

static void end_making(const bool *is_making)
{
	if (*is_making)
		contexts_make_end();
}
#define _cleanup_making_ __attribute__((cleanup(end_making)))

static CUresult after_making(CUcontext made, struct charge *charge)
{
	if (charge->device)
		return contexts_keep(made, charge);
	if (state_enter() == STATE_OPEN)
		contexts_note_unlimited(made);
	return CUDA_SUCCESS;
}

HOOK_FORMS(cuCtxCreate, _v2, CUcontext *, context, unsigned int, flags, CUdevice, ordinal)
MAKE(real, flags, ordinal)

HOOK_BODY(cuCtxCreate_v3, CUcontext *, context, CUexecAffinityParam *, affinity, int,
	affinity_count, unsigned int, flags, CUdevice, ordinal)
MAKE(cuda.cuCtxCreate_v3, affinity, affinity_count, flags, ordinal)

HOOK_BODY(cuCtxCreate_v4, CUcontext *, context, CUctxCreateParams *, parameters, unsigned int,
	flags, CUdevice, ordinal)
MAKE(cuda.cuCtxCreate_v4, parameters, flags, ordinal)

/* For a display, of interfaces that are no longer made. */
HOOK_FORMS(cuGLCtxCreate, _v2, CUcontext *, context, unsigned int, flags, CUdevice, ordinal)
MAKE(real, flags, ordinal)

HOOK_FORMS(cuVDPAUCtxCreate, _v2, CUcontext *, context, unsigned int, flags, CUdevice, ordinal,
	unsigned int, vdp_device, void *, get_proc_address)
MAKE(real, flags, ordinal, vdp_device, get_proc_address)

static bool is_current(CUcontext context)
{
	CUcontext current = NULL;

	return cuda.cuCtxGetCurrent && cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
	       current == context;
}

/* A context that is to end, as it was before the driver was asked. */
struct leaving {
	CUcontext context;
	uint64_t since;
	bool was_current;
};

static struct leaving leaving(CUcontext context)
{
	uint64_t since = current_since();

	return (struct leaving){
		.context = context, .since = since, .was_current = is_current(context)};
}

/* Whether the call itself, and nothing that came in between, has made it leave. */
static bool has_left(const struct leaving *l)
{
	return l->was_current && !is_current(l->context) && current_is_by_this_call(l->since);
}

/* Another thread may end it meanwhile, and make another one of that handle. */
#define TRIES_MOST 8

/* No call uses code of the context, and none begins. *ret_life goes to code_pins_unload_end(). */
static CUresult begin_end(CUcontext context, struct context_end *ret_end, uint64_t *ret_life)
{
	uint64_t ending;
	CUresult r;

	for (unsigned i = 0; i < TRIES_MOST; i++) {
		*ret_life = contexts_life_of(context);
		r = code_pins_unload_begin(*ret_life, END_WAIT_NS);
		if (r != CUDA_SUCCESS)
			return r;
		r = contexts_destroy_begin(context, ret_end);
		/* What is in no books is the driver's to know. */
		ending = r == CUDA_SUCCESS ? contexts_ending_life(ret_end) : 0;
		if (r == CUDA_SUCCESS && (!ending || ending == *ret_life))
			return r;
		if (r == CUDA_SUCCESS)
			contexts_destroy_end(ret_end, false);
		code_pins_unload_end(*ret_life, false);
		if (r != CUDA_SUCCESS)
			return r;
	}
	return CUDA_ERROR_NOT_READY;
}

/*
 * What the context had is given back. The answer may be of a kernel that failed before, and the context gone all the
 * same: then it is not current any longer. Of one that was not current nothing tells, and it stays charged.
 */
HOOK_FORMS(cuCtxDestroy, _v2, CUcontext, context)
{
	struct context_end end;
	struct leaving before;
	uint64_t life;
	bool is_gone;
	CUresult r;
	CHARGE_SCOPE();

	if (!current_may_change())
		return CUDA_ERROR_NOT_PERMITTED;
	CURRENT_SCOPE();
	CURRENT_STAYS();
	if (state_enter() != STATE_OPEN)
		return real(context);
	r = begin_end(context, &end, &life);
	if (r != CUDA_SUCCESS)
		return r;
	before = leaving(context);
	r = real(context);
	is_gone = r == CUDA_SUCCESS || has_left(&before);
	contexts_destroy_end(&end, is_gone);
	code_pins_unload_end(life, is_gone);
	return r;
}

/* A context can be detached only while it is current, and where it has ended it is not any longer. */
HOOK_BODY(cuCtxDetach, CUcontext, context)
{
	struct context_end end;
	struct leaving before;
	uint64_t life;
	bool is_gone;
	CUresult r;
	CHARGE_SCOPE();

	if (!current_may_change())
		return CUDA_ERROR_NOT_PERMITTED;
	CURRENT_SCOPE();
	CURRENT_STAYS();
	if (state_enter() != STATE_OPEN)
		return cuda.cuCtxDetach(context);
	r = begin_end(context, &end, &life);
	if (r != CUDA_SUCCESS)
		return r;
	before = leaving(context);
	r = cuda.cuCtxDetach(context);
	is_gone = r == CUDA_SUCCESS && has_left(&before);
	contexts_destroy_end(&end, is_gone);
	code_pins_unload_end(life, is_gone);
	return r;
}

/* A call of this thread in the middle of which this comes would charge the wrong context (driver/current.h). */
#define CHANGE(call)                                     \
	{                                                \
		if (!current_may_change())               \
			return CUDA_ERROR_NOT_PERMITTED; \
		CURRENT_SCOPE();                         \
		return call;                             \
	}

HOOK_BODY(cuCtxSetCurrent, CUcontext, context)
CHANGE(cuda.cuCtxSetCurrent(context))

HOOK_FORMS(cuCtxPushCurrent, _v2, CUcontext, context)
CHANGE(real(context))

HOOK_FORMS(cuCtxPopCurrent, _v2, CUcontext *, context)
CHANGE(real(context))
