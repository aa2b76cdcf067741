/* SPDX-License-Identifier: Apache-2.0 */
/* Code: images that are loaded, and functions that are launched for the first time. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/code.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/local.h"
#include "tenant/memory/managed_data.h"
#include "tenant/memory/table.h"

/* The driver takes room for code by this much (H200, driver 580). */
#define CODE_STEP_BYTES UINT64_C(0x200000)

/* What the device's own runtime takes once a context (H200, driver 580), rounded up. */
#define HEAP_RUNTIME_BYTES   UINT64_C(0x8c00000)
#define PRINTF_RUNTIME_BYTES UINT64_C(0x4000000)
#define HEAP_EXTRA_BYTES     UINT64_C(0x200000)

/* What a library's image tells: key library, a its bytes, b its managed KiB << 2 | what it uses. */
#define HAS_HEAP   1u
#define HAS_PRINTF 2u
static struct table libraries;

_Atomic uintptr_t code_launched[CODE_PLACES];
HOT_WORD _Atomic bool code_has_many_contexts;
static _Atomic uint32_t generation;
static _Atomic uint32_t context_count;

/*
 * What the contexts of a device have already, so that it is not reserved again. All relaxed: with a
 * wrong one too much is reserved for a moment, or what was taken is charged after the call.
 */
struct runtime {
	_Atomic bool has_heap_runtime, has_printf_runtime;
	_Atomic bool heap_is_expected, heap_is_taken;
};
static struct runtime runtimes[STATE_ORDINALS];

static bool is(const _Atomic bool *flag)
{
	return atomic_load_explicit(flag, memory_order_relaxed);
}

static void set(_Atomic bool *flag, bool value)
{
	atomic_store_explicit(flag, value, memory_order_relaxed);
}

static struct runtime *current_runtime(void)
{
	struct device *device;

	return state_current_device(&device) == CUDA_SUCCESS ? &runtimes[device->ordinal] : NULL;
}

static uint64_t load_bound_bytes(const struct image *image)
{
	uint64_t bound = CODE_STEP_BYTES;
	struct runtime *r = current_runtime();

	if (image->is_known)
		bound += round_up_u64(image->device_bytes, CODE_STEP_BYTES);
	if (r && image->has_heap && !is(&r->has_heap_runtime))
		bound += HEAP_RUNTIME_BYTES;
	if (r && image->has_printf && !is(&r->has_printf_runtime))
		bound += PRINTF_RUNTIME_BYTES;
	return bound;
}

CUresult code_check(const struct image *image)
{
	if (!image->hides_managed || state_enter() != STATE_OPEN)
		return CUDA_SUCCESS;
	log_error("PTX that is not understood names managed variables, so it is refused");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult code_load_begin(const struct image *image, struct code_load *ret_load)
{
	bool is_open = state_enter() == STATE_OPEN;
	uint64_t bound = is_open ? load_bound_bytes(image) : CODE_STEP_BYTES;
	CUresult r = code_check(image);

	*ret_load = (struct code_load){.guard = {.is_armed = false}, .managed = CHARGE_NULL};
	if (r != CUDA_SUCCESS)
		return r;
	/* Without a context the driver says so itself. */
	r = guard_begin_current(bound, &ret_load->guard);
	if (r == CUDA_SUCCESS && ret_load->guard.is_armed)
		r = managed_data_begin(image->managed_bytes, &ret_load->managed);
	if (r != CUDA_SUCCESS)
		guard_cancel(&ret_load->guard);
	return r;
}

/* Of an image that tells nothing, what it took tells whether it brought the runtime's heap. */
bool code_load_end(const struct image *image, struct code_load *load, const void *owner)
{
	struct guard *guard = &load->guard;
	struct runtime *r = guard->is_armed ? &runtimes[guard->charge.device->ordinal] : NULL;
	bool has_room = !owner || managed_data_keep(owner, &load->managed);

	/* Before the guard looks, so that nothing else is under way. */
	charge_undo(&load->managed);
	has_room &= guard_end(guard);
	FAULT("code: loaded");
	if (!r)
		return true;
	if (image->has_heap || guard->taken_bytes >= (int64_t)HEAP_RUNTIME_BYTES) {
		set(&r->has_heap_runtime, true);
		set(&r->heap_is_expected, true);
	}
	if (image->has_printf)
		set(&r->has_printf_runtime, true);
	return has_room;
}

uintptr_t code_key_slowly(CUfunction function)
{
	CUcontext context = NULL;

	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	return code_key(function, context);
}

/*
 * Marks a function as launched, or a library as used. Whoever forgets counts up before, so a mark that
 * comes too late for that is taken back.
 */
static void mark(uintptr_t handle, uint32_t at_generation)
{
	bool is_by_context = is(&code_has_many_contexts);
	uintptr_t key = is_by_context ? code_key_slowly((CUfunction)handle) : handle;
	_Atomic uintptr_t *place = code_place(key);

	atomic_store(place, key);
	if (atomic_load(&generation) != at_generation)
		atomic_store(place, 0);
}

bool code_library_keep(CUlibrary library, const struct image *image)
{
	struct table_entry entry = {.key = (uintptr_t)library, .a = image->device_bytes};

	if (!image->is_known || state_enter() != STATE_OPEN)
		return true;
	entry.b = (image->has_heap ? HAS_HEAP : 0) | (image->has_printf ? HAS_PRINTF : 0) |
		  (image->managed_bytes / 1024 + (image->managed_bytes % 1024 != 0)) << 2;
	FAULT("code: the library is loaded");
	return table_put(&libraries, entry) == 0;
}

void code_library_forget(CUlibrary library)
{
	if (table_take(&libraries, (uintptr_t)library, NULL) != 0)
		log_debug("a library told nothing of itself");
}

/* Handles are even, so the odd word beside one is free to mean its use. */
static uintptr_t use_of(const void *handle)
{
	return (uintptr_t)handle | 1;
}

static struct image library_image(CUlibrary library)
{
	struct table_entry entry;

	if (code_is_launched((CUfunction)use_of(library)) ||
		table_get(&libraries, (uintptr_t)library, &entry) != 0)
		return (struct image){.is_known = false};
	return (struct image){.is_known = true,
		.device_bytes = entry.a,
		.managed_bytes = (entry.b >> 2) * 1024,
		.has_heap = entry.b & HAS_HEAP,
		.has_printf = entry.b & HAS_PRINTF};
}

static CUresult use_begin(CUlibrary library, uintptr_t key, struct code_use *ret_use)
{
	*ret_use = (struct code_use){.key = 0};
	if (code_is_launched((CUfunction)key))
		return CUDA_SUCCESS;
	ret_use->key = key;
	ret_use->library = library;
	ret_use->generation = atomic_load(&generation);
	ret_use->image = library_image(library);
	return code_load_begin(&ret_use->image, &ret_use->load);
}

CUresult code_use_begin(CUlibrary library, struct code_use *ret_use)
{
	return use_begin(library, use_of(library), ret_use);
}

CUresult code_use_kernel_begin(CUkernel kernel, struct code_use *ret_use)
{
	CUlibrary library = NULL;

	if (cuda.cuKernelGetLibrary && cuda.cuKernelGetLibrary(&library, kernel) != CUDA_SUCCESS)
		library = NULL;
	return use_begin(library, use_of(kernel), ret_use);
}

CUresult code_use_end(struct code_use *use, CUresult r)
{
	if (!use->key)
		return r;
	FAULT("code: used");
	code_load_end(&use->image, &use->load, r == CUDA_SUCCESS ? use->library : NULL);
	if (r == CUDA_SUCCESS)
		mark(use->key, use->generation);
	return r;
}

static uint64_t heap_bytes(void)
{
	size_t bytes;

	return cuda.cuCtxGetLimit &&
			       cuda.cuCtxGetLimit(&bytes, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS
		       ? bytes + HEAP_EXTRA_BYTES
		       : HEAP_EXTRA_BYTES;
}

/* What loading the function may take; a CUkernel may bring its whole library. */
static uint64_t load_bytes(CUfunction function)
{
	CUfunctionLoadingState loading;
	CUlibrary library;

	if (!cuda.cuFuncIsLoaded)
		return CODE_STEP_BYTES;
	if (cuda.cuFuncIsLoaded(&loading, function) == CUDA_SUCCESS)
		return loading == CU_FUNCTION_LOADING_STATE_LOADED ? 0 : CODE_STEP_BYTES;
	if (!cuda.cuKernelGetLibrary ||
		cuda.cuKernelGetLibrary(&library, (CUkernel)function) != CUDA_SUCCESS)
		return CODE_STEP_BYTES;
	return CODE_STEP_BYTES + round_up_u64(library_image(library).device_bytes, CODE_STEP_BYTES);
}

CUresult code_launch_begin(CUfunction function, CUstream stream, struct code_launch *ret_launch)
{
	struct runtime *r;
	uint64_t bound;
	CUresult result;

	*ret_launch = (struct code_launch){.function = function,
		.generation = atomic_load(&generation),
		.is_captured = capture_is_on(stream),
		.local = CHARGE_NULL};
	if (!function) /* the driver refuses it */
		return CUDA_SUCCESS;
	if (state_enter() == STATE_CLOSED)
		return local_begin(local_frame_bytes(function), &ret_launch->local);
	r = state_enter() == STATE_OPEN ? current_runtime() : NULL;
	if (!r)
		return CUDA_SUCCESS;
	bound = load_bytes(function);
	if (is(&r->heap_is_expected) && !is(&r->heap_is_taken))
		bound += heap_bytes();
	result = guard_begin_current(bound, &ret_launch->guard);
	/* Nothing runs while it is captured: its frames get room when the graph is instantiated. */
	if (result == CUDA_SUCCESS && !ret_launch->is_captured)
		result = local_begin(local_frame_bytes(function), &ret_launch->local);
	if (result != CUDA_SUCCESS)
		guard_cancel(&ret_launch->guard);
	return result;
}

void code_launch_end(struct code_launch *launch, CUresult r)
{
	struct device *device = launch->guard.charge.device;
	bool is_armed = launch->guard.is_armed;
	int64_t heap = is_armed ? (int64_t)heap_bytes() : 0;
	int64_t frames = (int64_t)launch->local.units * REGION_UNIT_BYTES;

	FAULT("code: launched");
	if (is_armed) {
		local_end(&launch->local);
		guard_end(&launch->guard);
		/* Room for frames, which is as large, is no heap. */
		if (launch->guard.taken_bytes - frames >= heap)
			set(&runtimes[device->ordinal].heap_is_taken, true);
	}
	if (r == CUDA_SUCCESS && !launch->is_captured)
		mark((uintptr_t)launch->function, launch->generation);
}

void code_forget_launches(void)
{
	atomic_fetch_add(&generation, 1);
	for (unsigned i = 0; i < CODE_PLACES; i++)
		/* relaxed: whoever sees the old mark launches at the same time as the unloading */
		atomic_store_explicit(&code_launched[i], 0, memory_order_relaxed);
}

void code_context_made(void)
{
	if (atomic_fetch_add(&context_count, 1) == 0)
		return;
	set(&code_has_many_contexts, true);
	code_forget_launches();
}

void code_context_ended(struct device *device, CUcontext context)
{
	struct runtime *r = &runtimes[device->ordinal];

	(void)context;
	set(&r->has_heap_runtime, false);
	set(&r->has_printf_runtime, false);
	set(&r->heap_is_expected, false);
	set(&r->heap_is_taken, false);
	atomic_fetch_sub(&context_count, 1);
	code_forget_launches();
}

void code_reset_after_fork(void)
{
	set(&code_has_many_contexts, false);
	atomic_store(&context_count, 0);
	for (int i = 0; i < STATE_ORDINALS; i++)
		code_context_ended(&(struct device){.ordinal = i}, NULL);
	atomic_store(&context_count, 0);
	table_forget(&libraries);
}
