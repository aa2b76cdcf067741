/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: launches. A function that was launched before goes straight through the gate to the driver. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tenant/memory/code.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/launching.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"
#include "tenant/driver/own_events.h"

/*
 * Whether nothing is to be done for the launch: its function was launched before, and nothing is metered.
 * Without a call, so that a hook that finds it so calls the driver at once. launching_end() when that has answered.
 */
static inline bool is_free(CUfunction function)
{
	if (UNLIKELY(!launching_begin(function)))
		return false;
	if (LIKELY(marks_is_launched_at_once(function) && gate_is_free()))
		return true;
	launching_end();
	return false;
}

/* A launch that something is to be done for. */
struct launch {
	enum {
		LAUNCH_KNOWN,
		LAUNCH_PINNED,
		LAUNCH_FIRST
	} kind; /* its function was launched before; so, and is pinned; was not */
	struct code_launch code;
	struct gate_pass pass;
};

/* Where this thread has no word for it. */
static CUresult pin_known(CUfunction function, CUstream stream, struct launch *launch)
{
	CUresult r = code_launch_pin(function, stream, &launch->code.pin);

	if (r != CUDA_SUCCESS)
		return r;
	if (LIKELY(marks_is_launched(function, stream))) {
		launch->kind = LAUNCH_PINNED;
		return r;
	}
	code_pins_end(&launch->code.pin);
	return code_launch_begin(function, stream, &launch->code);
}

/* Whether its function was launched before in the stream's context, and the launch is told. */
static inline bool begin_known(CUfunction function, CUstream stream)
{
	CUcontext context = NULL;
	uintptr_t key = (uintptr_t)function;

	if (marks_are_by_context()) {
		context = contexts_of_stream(stream);
		key = marks_key(function, context);
	}
	if (UNLIKELY(!launching_begin_in(function, context)))
		return false;
	if (LIKELY(marks_has(key)))
		return true;
	launching_end();
	return false;
}

static CUresult begin_code(CUfunction function, CUstream stream, struct launch *launch)
{
	launching_take_word();
	launch->kind = LAUNCH_KNOWN;
	if (LIKELY(begin_known(function, stream)))
		return CUDA_SUCCESS;
	launch->kind = LAUNCH_FIRST;
	return UNLIKELY(launching_is_busy()) ? pin_known(function, stream, launch)
					     : code_launch_begin(function, stream, &launch->code);
}

/* launch_end() after a success. stream is as gate_enter() has it. */
static CUresult launch_begin(
	CUfunction function, CUstream stream, uint64_t blocks, struct launch *ret_launch)
{
	CUresult r;

	gate_enter(stream, gate_key(function, blocks), &ret_launch->pass);
	r = begin_code(function, stream, ret_launch);
	if (r != CUDA_SUCCESS)
		gate_leave(&ret_launch->pass, r);
	return r;
}

/* What keeps the code. */
static void let_code_go(struct launch *launch)
{
	if (LIKELY(launch->kind == LAUNCH_KNOWN))
		launching_end();
	else
		code_pins_end(&launch->code.pin);
}

static void launch_end(struct launch *launch, CUresult r)
{
	if (UNLIKELY(launch->kind == LAUNCH_FIRST))
		code_launch_end(&launch->code, r);
	else
		let_code_go(launch);
	gate_leave(&launch->pass, r);
}

/* The rest of a launch's hook. blocks, the size of its grid, tells a function's launches apart. */
#define LAUNCH(real, stream, blocks, args)                                    \
	{                                                                     \
		struct launch launch;                                         \
		CUresult r = launch_begin(function, stream, blocks, &launch); \
                                                                              \
		if (r == CUDA_SUCCESS) {                                      \
			r = real args;                                        \
			launch_end(&launch, r);                               \
		}                                                             \
		return r;                                                     \
	}

#define LAUNCH_FORMS(symbol, suffix, ...) LAUNCH_FORMS_(symbol, suffix, __VA_ARGS__)
#define LAUNCH_FORMS_(symbol, suffix, stream, blocks, ...)                                  \
	HOOK_FORMS_BETWEEN(symbol, suffix, is_free(function), launching_end(), __VA_ARGS__) \
	LAUNCH(real, stream, blocks, (HOOK_NAMES(__VA_ARGS__)))
#define LAUNCH_OLD(symbol, stream, blocks, ...) \
	HOOK_BODY(symbol, __VA_ARGS__)          \
	LAUNCH(cuda.symbol, stream, blocks, (HOOK_NAMES(__VA_ARGS__)))

#define XYZ(name) unsigned int, name##_x, unsigned int, name##_y, unsigned int, name##_z
#define GRID                                                                                   \
	stream, (uint64_t)grid_x *grid_y *grid_z, CUfunction, function, XYZ(grid), XYZ(block), \
		unsigned int, shared_bytes, CUstream, stream, void **, params
LAUNCH_FORMS(cuLaunchKernel, _ptsz, GRID, void **, extra)
LAUNCH_FORMS(cuLaunchCooperativeKernel, _ptsz, GRID)

/* More attributes than there are kinds of. */
#define ATTRIBUTES 24
/* CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, of CUDA 12.3 */
#define LAUNCH_COMPLETION_EVENT 12

/* Whether the attribute lets the launch record an event that is the library's. */
static bool is_of_own_event(const CUlaunchAttribute *attribute)
{
	CUevent event;

	if (attribute->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
		(int)attribute->id != LAUNCH_COMPLETION_EVENT)
		return false;
	/* the first member of both */
	memcpy(&event, &attribute->value, sizeof(event));
	return !own_events_bind(event);
}

/* The attributes into memory of the hook, where they are looked at; the config is the hook's own. */
static CUresult take_attributes(CUlaunchConfig *config, CUlaunchAttribute copies[ATTRIBUTES])
{
	if (!config->attrs || config->numAttrs == 0)
		return CUDA_SUCCESS;
	if (config->numAttrs > ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(copies, config->attrs, config->numAttrs * sizeof(*copies));
	config->attrs = copies;
	for (unsigned i = 0; i < config->numAttrs; i++)
		if (is_of_own_event(&copies[i]))
			return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

/* Where the library has an event, the driver must not read the program's memory, which tells what is recorded. */
HOOK_FORMS_BETWEEN(cuLaunchKernelEx, _ptsz, !own_events_are_any() && is_free(function),
	launching_end(), const CUlaunchConfig *, config, CUfunction, function, void **, params,
	void **, extra)
{
	CUlaunchAttribute attributes[ATTRIBUTES];
	CUlaunchConfig wanted;
	CUresult taken;

	if (!config)
		return real(config, function, params, extra);
	wanted = *config;
	taken = take_attributes(&wanted, attributes);
	if (taken != CUDA_SUCCESS)
		return taken;
	LAUNCH(real, hook_meant(wanted.hStream, null_stream),
		(uint64_t)wanted.gridDimX * wanted.gridDimY * wanted.gridDimZ,
		(&wanted, function, params, extra))
}

/* The interfaces of CUDA 2, where a function has its blocks and its parameters before. */
LAUNCH_OLD(cuLaunch, NULL, 0, CUfunction, function)
LAUNCH_OLD(cuLaunchGrid, NULL, (uint64_t)width *(uint64_t)height, CUfunction, function, int, width,
	int, height)
LAUNCH_OLD(cuLaunchGridAsync, stream, (uint64_t)width *(uint64_t)height, CUfunction, function, int,
	width, int, height, CUstream, stream)

/* One of several launches that begin together, in the context of its stream. */
struct one {
	CUcontext context; /* NULL: a stream without one is the driver's to refuse */
	struct launch launch;
};

static CUresult begin_one(const CUDA_LAUNCH_PARAMS *p, struct one *ret_one)
{
	uint64_t blocks = (uint64_t)p->gridDimX * p->gridDimY * p->gridDimZ;
	CUcontext context;
	CUresult r;

	ret_one->context = NULL;
	if (!cuda.cuStreamGetCtx || cuda.cuStreamGetCtx(p->hStream, &context) != CUDA_SUCCESS ||
		cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	ret_one->context = context;
	r = launch_begin(p->function, p->hStream, blocks, &ret_one->launch);
	cuda.cuCtxPopCurrent_v2(&context);
	return r;
}

static void end_one(struct one *one, CUresult r)
{
	CUcontext popped;

	if (!one->context)
		return;
	if (cuda.cuCtxPushCurrent_v2(one->context) == CUDA_SUCCESS) {
		launch_end(&one->launch, r);
		cuda.cuCtxPopCurrent_v2(&popped);
	} else {
		let_code_go(&one->launch);
		gate_leave(&one->launch.pass, r);
	}
}

HOOK_BODY(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *, launches, unsigned int, count,
	unsigned int, flags)
{
	_cleanup_free_ struct one *begun = NULL;
	_cleanup_free_ CUDA_LAUNCH_PARAMS *wanted = NULL;
	unsigned int done = 0;
	CUresult r = CUDA_SUCCESS;

	if (!launches || count == 0 || state_enter() == STATE_ASIDE)
		return cuda.cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
	/* Each is for a device of its own. */
	if (count > STATE_ORDINALS)
		return CUDA_ERROR_INVALID_VALUE;
	begun = calloc(count, sizeof(*begun));
	wanted = calloc(count, sizeof(*wanted));
	if (!begun || !wanted)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(wanted, launches, count * sizeof(*wanted));
	while (done < count && r == CUDA_SUCCESS) {
		r = begin_one(&wanted[done], &begun[done]);
		if (r == CUDA_SUCCESS)
			done++;
	}
	if (r == CUDA_SUCCESS)
		r = cuda.cuLaunchCooperativeKernelMultiDevice(wanted, count, flags);
	for (unsigned int i = 0; i < done; i++)
		end_one(&begun[i], r);
	return r;
}
