/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts.
 *
 * The primary context is counted by the driver, retained and released by anybody, and reset without
 * being released. Instead of counting along we ask the driver after each such call whether it is
 * there, and book the change, under a lock that makes calling, asking and booking one step: the handle of
 * a primary context comes again, and what lives in the new one must not end with the old one. The driver,
 * too, has one thread at a time make or end a device's primary context.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/driver/attach.h"
#include "tenant/driver/own_thread.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/context_calls.h"
#include "tenant/memory/context_size.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/reconcile.h"
#include "tenant/memory/table.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"

#include <errno.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"

/* Longest wait for another thread that makes or ends the primary context: some seconds on a cold machine. */
#define PRIMARY_WAIT_NS UINT64_C(60000000000)

/* Written under the lock. */
struct primary {
	struct lock lock;
	uint64_t charged_bytes; /* 0: there is none */
	_Atomic(CUcontext) context;
	_Atomic uint64_t life;
	_Atomic uint32_t
		references; /* the program's, as far as it went through here; the driver has as many or more */
};

static struct primary primaries[STATE_ORDINALS];
static _Atomic int primary_high; /* ordinals below it have had one */
static _Atomic uint64_t last_life;
static struct table unlimited;		      /* key: a context of a device that is in no share */
static _Atomic uint32_t live[STATE_ORDINALS]; /* contexts of each device that are in the books */
static _Atomic uint64_t lived;		      /* devices that have had some: one bit an ordinal */
static struct table greens; /* key: context; a: the green context it is a face of; b: ordinal */
static _Atomic uint32_t green_count;

CUresult contexts_enter(CUdevice ordinal, struct device **ret_device)
{
	int r;

	*ret_device = NULL;
	switch (state_enter()) {
	case STATE_OPEN:
		r = state_meet_device(ordinal, ret_device);
		return r == 0 || r == -ENODEV ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	case STATE_CLOSED:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_SUCCESS;
	}
}

CUresult contexts_reserve(struct device *device, struct charge *ret_charge)
{
	CUresult r;

	parts_context_comes(device);
	reconcile_start(device);
	reconcile_before(device);
	r = charge_reserve(device, context_size_expected_bytes(device), CHARGE_CONTEXT, ret_charge);
	if (r == CUDA_SUCCESS)
		ret_charge->found_bytes = reconcile_found_bytes(device);
	if (r == CUDA_SUCCESS && !own_pid_is_certain(device) &&
		charge_held_bytes(device) == (uint64_t)ret_charge->units * REGION_UNIT_BYTES)
		own_pid_before_context(device);
	return r;
}

/*
 * What a context took beyond its charge is found at once, not a second later. False where there was no room for it: not
 * where others are the reason that the slice is above its quota.
 */
static bool has_room(struct device *device, enum context_size_found found, uint64_t found_bytes)
{
	if (found == CONTEXT_SIZE_KNOWN)
		return true;
	parts_compare(device, PARTS_REFUSAL);
	if (!charge_is_above_quota(device) ||
		(found == CONTEXT_SIZE_UNSURE && reconcile_found_bytes(device) == found_bytes))
		return true;
	log_warn("a context took more than was left of the quota, so it is refused");
	return false;
}

CUresult contexts_make_begin(void)
{
	if (context_calls_enter())
		return CUDA_SUCCESS;
	log_error("another context takes too long to end, so none is made");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void contexts_make_end(void)
{
	context_calls_leave();
}

void contexts_note_unlimited(CUcontext context)
{
	if (table_put(&unlimited, (struct table_entry){.key = (uintptr_t)context, .a = 1}) < 0)
		log_debug("a context of a device without a quota is not known");
}

/* Before anybody knows the context, and so before work is given to it. */
static void note_live(CUdevice ordinal)
{
	atomic_fetch_add(&live[ordinal], 1);
	atomic_fetch_or(&lived, UINT64_C(1) << ordinal);
}

bool contexts_are_on_several(void)
{
	uint64_t devices = atomic_load(&lived);

	return devices & (devices - 1);
}

uint64_t contexts_devices(void)
{
	uint64_t devices = 0;

	for (uint64_t left = atomic_load(&lived); left; left &= left - 1)
		if (atomic_load(&live[__builtin_ctzll(left)]))
			devices |= left & -left;
	return devices;
}

/* A context is gone, and with it all that lived in it. */
static void end_life(struct device *device, CUcontext context, uint64_t life)
{
	FAULT("context: gone");
	atomic_fetch_sub(&live[device->ordinal], 1);
	parts_context_ended(device, context);
	parts_life_ended(device, life);
	FAULT("context: its memory given back");
}

/* The driver has given its handle to another context: it has ended, and nothing told of that. */
static void end_former(CUcontext context)
{
	struct holding former;

	if (table_take(&unlimited, (uintptr_t)context, NULL) == 0 ||
		holding_take(HOLDING_CONTEXTS, (uintptr_t)context, &former) != 0)
		return;
	end_life(state_device(former.device), context, former.life);
	holding_give_back((uintptr_t)context, &former);
}

CUresult contexts_keep(CUcontext context, struct charge *charge)
{
	struct device *device = charge->device;
	uint64_t found_bytes = charge->found_bytes;
	enum context_size_found found;
	struct holding holding;
	struct context_end end;

	if (!device)
		return CUDA_SUCCESS;
	FAULT("context: made");
	/* Before it is measured, which takes what the process holds for what is in the books. */
	end_former(context);
	found = context_size_measure(device, charge, &live[device->ordinal]);
	holding = holding_of(charge, atomic_fetch_add(&last_life, 1) + 1, 0);
	if (holding_put(HOLDING_CONTEXTS, (uintptr_t)context, holding, charge->since) < 0) {
		log_error("no memory for our own tables, so a context is refused");
		cuda.cuCtxDestroy_v2(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("context: entered");
	charge_take(charge);
	note_live(device->ordinal);
	parts_context_made(context);
	if (has_room(device, found, found_bytes))
		return CUDA_SUCCESS;
	if (contexts_destroy_begin(context, &end) == CUDA_SUCCESS)
		contexts_destroy_end(&end, cuda.cuCtxDestroy_v2(context) == CUDA_SUCCESS);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void forget_unattributed(struct device *device)
{
	reconcile_forget(device, atomic_load(&live[device->ordinal]) == 0);
}

/* It is known, and from now on other threads' calls take it for one that is not. */
static bool take_out(CUcontext context, struct context_end *ret_end)
{
	ret_end->is_known =
		holding_end_begin(HOLDING_CONTEXTS, (uintptr_t)context, &ret_end->holding) == 0 ||
		table_take(&unlimited, (uintptr_t)context, NULL) == 0;
	return ret_end->is_known;
}

CUresult contexts_destroy_begin(CUcontext context, struct context_end *ret_end)
{
	bool may_go_on = context_calls_enter();

	FAULT("context: to be destroyed");
	if (may_go_on && !take_out(context, ret_end)) {
		context_calls_leave();
		may_go_on = context_calls_enter_alone();
		/* It may have come meanwhile; then others go on beside it. */
		if (may_go_on && take_out(context, ret_end))
			context_calls_let_others_in();
	}
	if (!may_go_on) {
		log_warn("a context that is not known is not destroyed beside others");
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	if (!ret_end->is_known)
		log_debug("a context is none of ours");
	own_thread_hold();
	parts_context_ends(context);
	charge_stray_begins();
	return CUDA_SUCCESS;
}

void contexts_destroy_end(const struct context_end *end, bool is_destroyed)
{
	const struct holding *holding = &end->holding.holding;
	CUcontext context = (CUcontext)(uintptr_t)end->holding.key;

	if (is_destroyed && holding->serial)
		end_life(state_device(holding->device), context, holding->life);
	own_thread_let_go();
	/* Now, so that an event's word for what waits in the context's streams is not believed before that is known. */
	charge_stray_ends(NULL);
	holding_end_done(&end->holding, is_destroyed);
	if (is_destroyed && holding->serial)
		forget_unattributed(state_device(holding->device));
	if (!is_destroyed && end->is_known && !holding->serial)
		contexts_note_unlimited(context);
	if (end->is_known)
		context_calls_leave();
	else
		context_calls_leave_alone();
}

/* Whether the driver holds a primary context; as_told where it does not answer. */
static bool is_active(const struct device *device, bool as_told)
{
	unsigned int flags;
	int active = 0;

	if (!cuda.cuDevicePrimaryCtxGetState ||
		cuda.cuDevicePrimaryCtxGetState(device->ordinal, &flags, &active) != CUDA_SUCCESS)
		return as_told;
	return active;
}

CUresult contexts_primary_begin(
	struct device *device, enum primary_kind kind, struct primary_call *ret_call)
{
	struct primary *p = &primaries[device->ordinal];
	bool may_come = kind == PRIMARY_RETAIN;
	CUresult r = CUDA_SUCCESS;

	*ret_call = (struct primary_call){.kind = kind,
		.device = device,
		.charge = CHARGE_NULL,
		.is_alone = patience_lock(&p->lock, PRIMARY_WAIT_NS),
		.is_stray = !may_come};
	if (!may_come) {
		own_thread_hold();
		parts_context_ends(atomic_load(&p->context));
		charge_stray_begins();
	}
	if (!ret_call->is_alone)
		return may_come ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	FAULT("context: primary locked");
	if (may_come && !is_active(device, false))
		r = contexts_reserve(device, &ret_call->charge);
	if (r != CUDA_SUCCESS)
		lock_leave(&p->lock);
	return r;
}

static void begin_primary(struct primary *p, CUcontext context, struct charge *charge)
{
	int ordinal = charge->device->ordinal, high = atomic_load(&primary_high);

	atomic_store(&p->life, atomic_fetch_add(&last_life, 1) + 1);
	atomic_store(&p->context, context);
	while (high <= ordinal && !atomic_compare_exchange_weak(&primary_high, &high, ordinal + 1))
		;
	p->charged_bytes = charge_take(charge);
	note_live(ordinal);
	parts_context_made(context);
}

static void end_primary(struct primary *p, struct device *device)
{
	uint64_t life = atomic_exchange(&p->life, 0), bytes = p->charged_bytes;

	p->charged_bytes = 0;
	end_life(device, atomic_exchange(&p->context, NULL), life);
	charge_give_back(device, bytes, CHARGE_CONTEXT);
	forget_unattributed(device);
}

/* Books what became of the primary context. */
static void follow_primary(struct primary *p, struct primary_call *call, CUcontext context)
{
	/* Without an answer what is charged stays: too much in the books is safe. */
	if (!is_active(call->device, true)) {
		if (p->charged_bytes)
			end_primary(p, call->device);
	} else if (!p->charged_bytes && context && call->charge.device) {
		begin_primary(p, context, &call->charge);
	}
}

/* What is not known counts as fewer, so that a release is taken for the last. Under the lock, or where another thread has that for too long. */
static void count_references(struct primary *p, const struct primary_call *call, CUresult r)
{
	if (r != CUDA_SUCCESS || call->kind == PRIMARY_GREEN)
		return;
	if (!call->is_alone || call->kind == PRIMARY_RESET)
		atomic_store(&p->references, 0);
	else if (call->kind == PRIMARY_RETAIN)
		atomic_fetch_add(&p->references, 1);
	else if (atomic_load(&p->references))
		atomic_fetch_sub(&p->references, 1);
}

uint64_t contexts_primary_at_stake(const struct primary_call *call)
{
	struct primary *p = &primaries[call->device->ordinal];

	return call->kind == PRIMARY_RELEASE && call->is_alone && atomic_load(&p->references) > 1
		       ? 0
		       : atomic_load(&p->life);
}

bool contexts_primary_has_ended(const struct primary_call *call, uint64_t life)
{
	return atomic_load(&primaries[call->device->ordinal].life) != life;
}

CUresult contexts_primary_end(struct primary_call *call, CUresult r, CUcontext context)
{
	struct primary *p = &primaries[call->device->ordinal];
	enum context_size_found found = CONTEXT_SIZE_KNOWN;
	uint64_t found_bytes = call->charge.found_bytes;

	if (call->is_alone) {
		FAULT("context: primary called");
		if (context)
			found = context_size_measure(
				call->device, &call->charge, &live[call->device->ordinal]);
		follow_primary(p, call, context);
	}
	if (call->is_stray) {
		own_thread_let_go();
		charge_stray_ends(NULL);
	}
	if (!call->is_alone) {
		count_references(p, call, r);
		return r;
	}
	charge_undo(&call->charge);
	if (!has_room(call->device, found, found_bytes)) {
		own_thread_hold();
		parts_context_ends(atomic_load(&p->context));
		charge_stray_begins();
		cuda.cuDevicePrimaryCtxRelease_v2(call->device->ordinal);
		follow_primary(p, call, NULL);
		own_thread_let_go();
		charge_stray_ends(NULL);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	count_references(p, call, r);
	lock_leave(&p->lock);
	return r;
}

void contexts_green_seen(CUgreenCtx green, CUcontext context)
{
	struct table_entry entry = {.key = (uintptr_t)context, .a = (uintptr_t)green};
	CUdevice ordinal = -1;
	CUcontext popped;

	if (cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return;
	if (cuda.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS)
		ordinal = -1;
	cuda.cuCtxPopCurrent_v2(&popped);
	if (ordinal < 0 || ordinal >= STATE_ORDINALS || table_get(&greens, entry.key, NULL) == 0)
		return;
	entry.b = (uint64_t)ordinal;
	if (table_put(&greens, entry) < 0)
		log_warn("what a green context allocates stays counted until the process ends");
	else
		atomic_fetch_add(&green_count, 1);
}

CUcontext contexts_primary_of(CUcontext green)
{
	struct table_entry face;

	if (table_get(&greens, (uintptr_t)green, &face) != 0)
		return NULL;
	return atomic_load(&primaries[face.b].context);
}

static bool is_face_of(const struct table_entry *entry, uint64_t green)
{
	return entry->a == green;
}

void contexts_green_destroy_begin(struct green_end *ret_end)
{
	ret_end->devices = 0;
	for (int i = 0; i < atomic_load(&primary_high); i++)
		if (atomic_load(&primaries[i].life) &&
			contexts_primary_begin(
				state_device(i), PRIMARY_GREEN, &ret_end->calls[i]) == CUDA_SUCCESS)
			ret_end->devices |= UINT64_C(1) << i;
}

void contexts_green_destroy_end(struct green_end *end, CUgreenCtx green, bool is_destroyed)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (is_destroyed &&
		table_take_next(&greens, is_face_of, (uintptr_t)green, &cursor, &entry) == 0)
		atomic_fetch_sub(&green_count, 1);
	for (int i = 0; i < STATE_ORDINALS; i++)
		if (end->devices >> i & 1)
			contexts_primary_end(&end->calls[i], CUDA_SUCCESS, NULL);
}

uint64_t contexts_life_of(CUcontext context)
{
	struct table_entry face;
	struct holding holding;

	for (int i = 0; i < atomic_load(&primary_high); i++)
		if (LIKELY(atomic_load(&primaries[i].context) == context))
			return atomic_load(&primaries[i].life);
	if (holding_get(HOLDING_CONTEXTS, (uintptr_t)context, &holding) == 0)
		return holding.life;
	/* relaxed: whoever uses a green context as one has it from a call that we saw */
	if (atomic_load_explicit(&green_count, memory_order_relaxed) &&
		table_get(&greens, (uintptr_t)context, &face) == 0)
		return atomic_load(&primaries[face.b].life);
	return 0;
}

uint64_t contexts_life_current(void)
{
	CUcontext context = NULL;

	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	return context ? contexts_life_of(context) : 0;
}

bool contexts_is_life(uint64_t number)
{
	return number && number <= atomic_load(&last_life);
}

CUcontext contexts_of_stream(CUstream stream)
{
	CUcontext context = NULL;

	/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are streams of the current context. */
	if ((uintptr_t)stream > 2 && cuda.cuStreamGetCtx &&
		cuda.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS)
		return context;
	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	return context;
}

void contexts_reset_after_fork(void)
{
	table_forget(&greens);
	table_forget(&unlimited);
	atomic_store(&green_count, 0);
	atomic_store(&lived, 0);
	for (int i = 0; i < STATE_ORDINALS; i++) {
		primaries[i] = (struct primary){.charged_bytes = 0};
		atomic_store(&live[i], 0);
	}
	atomic_store(&primary_high, 0);
}
