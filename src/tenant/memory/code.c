/* SPDX-License-Identifier: Apache-2.0 */
/* Code: images that are loaded, and functions that are launched for the first time. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/code.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/current.h"
#include "region/ledger.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/local.h"
#include "tenant/memory/managed_data.h"
#include "tenant/memory/runtime.h"

/* The driver takes room for code by this much (H200, driver 580). */
#define CODE_STEP_BYTES UINT64_C(0x200000)

/* A library that does not fit stays in its context if so much would have been enough: another use may fit later. */
#define EXCESS_STAYS_UNITS ledger_units(UINT64_C(0x4000000))

/* Uses of libraries that tell nothing, device by device. A driver may compile in each. */
#define FIRST_USE_WAIT_NS UINT64_C(60000000000)
static struct lock first_uses[STATE_ORDINALS];

CUresult code_check(const struct image *image)
{
	if (!image->hides_managed || state_enter() != STATE_OPEN)
		return CUDA_SUCCESS;
	log_error("PTX that is not understood names managed variables, so it is refused");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* With what may come unreserved, where that fits; else its turn comes before all others of the slice. */
static CUresult guard_load_begin(uint64_t bound, struct code_load *load)
{
	CUresult r = guard_begin_current(sum_u64(bound, load->turn.bytes), &load->guard);

	if (r == CUDA_ERROR_OUT_OF_MEMORY && load->turn.bytes && load_turn_take_slices(&load->turn))
		r = guard_begin_current(bound, &load->guard);
	return r;
}

/* is_open: it may bring the device's own runtime unreserved. */
static CUresult load_begin(const struct image *image, bool is_open, struct code_load *ret_load)
{
	uint64_t bound = CODE_STEP_BYTES, runtime = 0, current = current_since();
	struct device *device;
	CUresult r = code_check(image);

	*ret_load = (struct code_load){.guard = {.is_armed = false}, .managed = CHARGE_NULL};
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		r = runtime_load_begin(image, &runtime);
	if (r != CUDA_SUCCESS)
		return r;
	if (state_enter() == STATE_OPEN && state_current_device(&device) == CUDA_SUCCESS) {
		if (is_open && !load_turn_begin(device, &ret_load->turn)) {
			log_error("other code takes too long to be loaded, so some is refused");
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		reconcile_before(device);
	}
	bound = sum_u64(bound, round_up_u64(image->device_bytes, CODE_STEP_BYTES));
	bound = sum_u64(bound, runtime);
	/* Without a context the driver says so itself. */
	r = guard_load_begin(bound, ret_load);
	ret_load->guard.current = current;
	ret_load->guard.is_open_ended = !image->is_known;
	if (r == CUDA_SUCCESS && ret_load->guard.is_armed)
		r = managed_data_begin(image->managed_bytes, &ret_load->managed);
	ret_load->managed.current = current;
	if (r != CUDA_SUCCESS) {
		guard_cancel(&ret_load->guard);
		load_turn_end(&ret_load->turn);
	}
	return r;
}

CUresult code_load_begin(const struct image *image, struct code_load *ret_load)
{
	return load_begin(
		image, state_enter() == STATE_OPEN && runtime_load_is_open(image), ret_load);
}

/* What nobody has measured was not judged, unless the image told all. */
static bool is_measured(const struct image *image, const struct code_load *load)
{
	return image->is_known || load->guard.growth.is_measured;
}

static bool end_load(const struct image *image, struct code_load *load, const void *owner)
{
	struct guard *guard = &load->guard;
	bool has_room;

	load->is_kept = !owner || managed_data_keep(owner, &load->managed);
	/* Before the guard looks, so that nothing else is under way. */
	charge_undo(&load->managed);
	if (!guard->is_armed)
		return true;
	has_room = guard_end(guard) && load->is_kept && is_measured(image, load);
	FAULT("code: loaded");
	runtime_loaded(image, owner, guard->life, guard_known_bytes(guard));
	return has_room;
}

bool code_load_end(const struct image *image, struct code_load *load, const void *owner)
{
	bool has_room = end_load(image, load, owner);

	load_turn_end(&load->turn);
	return has_room;
}

/* Handles are even, so the odd word beside one is free to mean its use. */
static uintptr_t use_of(const void *handle)
{
	return (uintptr_t)handle | 1;
}

/* A mark is found at once, and is forgotten with all others when anything is unloaded; what is loaded is known for good. */
static bool is_used_here(CUlibrary library)
{
	return library && (marks_is_launched((CUfunction)use_of(library), NULL) ||
				  libraries_is_loaded_in(library, contexts_life_current()));
}

/* Of a library that was used in this context before, only functions may still come. */
static struct image image_of(CUlibrary library)
{
	return is_used_here(library) ? (struct image){.is_known = false} : libraries_image(library);
}

/*
 * A use of which nobody knows what it takes is judged before the next one begins on that device: of several at once each
 * would be found to fit, as long as the others are not charged. False where that takes too long.
 */
static bool wait_for_others(CUlibrary library, struct lock **ret_alone)
{
	struct device *device;
	struct lock *lock;

	if (state_enter() != STATE_OPEN || is_used_here(library) ||
		libraries_image(library).is_known || state_current_device(&device) != CUDA_SUCCESS)
		return true;
	lock = &first_uses[device->ordinal];
	if (!patience_lock(lock, FIRST_USE_WAIT_NS))
		return false;
	*ret_alone = lock;
	return true;
}

static void let_others_go_on(struct code_use *use)
{
	if (use->alone)
		lock_leave(use->alone);
	use->alone = NULL;
}

/* What is used, once nobody else is at such a use; the call counts as one with a library then. */
static CUresult find_used(const void *handle, CUlibrary library, struct code_use *use)
{
	if (!libraries_enter(handle))
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Where it is not pinned. */
	if (!library && cuda.cuKernelGetLibrary(&library, (CUkernel)handle) != CUDA_SUCCESS)
		library = NULL;
	libraries_leave();
	if (!wait_for_others(library, &use->alone)) {
		log_error("other libraries take too long to be loaded, so one is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	use->library = library;
	return libraries_enter(handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is pinned. */
static CUresult use_pinned(const void *handle, struct code_use *ret_use)
{
	CUlibrary library = code_used(ret_use);
	uint64_t current = current_since();
	bool is_there;
	CUresult r;

	if (marks_is_launched((CUfunction)use_of(handle), NULL))
		return CUDA_SUCCESS;
	r = find_used(handle, library, ret_use);
	if (r == CUDA_SUCCESS) {
		ret_use->key = use_of(handle);
		ret_use->generation = marks_generation();
		ret_use->library_number = libraries_number(ret_use->library);
		ret_use->life = contexts_life_current();
		ret_use->image = image_of(ret_use->library);
		/* Its data is there, and the runtime that it needs. */
		is_there = is_used_here(ret_use->library);
		r = is_there ? load_begin(&ret_use->image, false, &ret_use->load)
			     : code_load_begin(&ret_use->image, &ret_use->load);
		ret_use->load.guard.current = ret_use->load.managed.current = current;
		if (is_there)
			ret_use->load.guard.is_open_ended = false;
		if (r != CUDA_SUCCESS)
			libraries_leave();
	}
	if (r != CUDA_SUCCESS)
		let_others_go_on(ret_use);
	return r;
}

static CUresult use_begin(const void *handle, CUresult pinned, struct code_use *ret_use)
{
	CUresult r = pinned == CUDA_SUCCESS ? use_pinned(handle, ret_use) : pinned;

	if (r != CUDA_SUCCESS)
		code_pins_end(&ret_use->pin);
	return r;
}

CUresult code_use_begin(CUlibrary library, struct code_use *ret_use)
{
	*ret_use = (struct code_use){.key = 0};
	return use_begin(library, code_pins_library(library, &ret_use->pin), ret_use);
}

CUresult code_use_kernel_begin(CUkernel kernel, struct code_use *ret_use)
{
	*ret_use = (struct code_use){.key = 0};
	return use_begin(kernel, code_pins_function((CUfunction)kernel, &ret_use->pin), ret_use);
}

static bool is_far_above_quota(const struct device *device)
{
	/* relaxed: a limit of a moment ago is a limit */
	uint64_t most = atomic_load_explicit(&device->limit_units, memory_order_relaxed);

	return ledger_used_units(state.region.file, device->entry) > most + EXCESS_STAYS_UNITS;
}

/* What took more than there was room for goes again; a little stays in the books, so that nothing more is given. */
static void undo_use(struct code_use *use, struct device *device)
{
	/* This call has come to its end, and does not keep it. */
	code_pins_end(&use->pin);
	if (use->outer)
		code_pins_end(use->outer);
	log_info("a library took more than was left of the quota, so its use is refused");
	if ((!use->load.is_kept || !is_measured(&use->image, &use->load) ||
		    is_far_above_quota(device)) &&
		libraries_unload(use->library, device))
		log_warn("a library that took far more than was left of the quota was unloaded");
}

/* A use that failed, as of a name that is not there, may have loaded the library first. That is sure when it is loaded. */
static bool is_loaded_in_vain(const struct code_use *use)
{
	CUmodule module;

	return use->load.guard.is_armed && use->library && !is_used_here(use->library) &&
	       cuda.cuLibraryGetModule(&module, use->library) == CUDA_SUCCESS;
}

/* In the context in which the use began, if that lives still. */
static void note_loaded(const struct code_use *use)
{
	uint64_t life = contexts_life_current();

	if (life == use->life && current_is_same(use->load.guard.current))
		libraries_loaded_in(use->library_number, life);
}

static CUresult end_use(struct code_use *use, CUresult r)
{
	struct device *device = use->load.guard.charge.device;
	bool is_done = r == CUDA_SUCCESS;
	bool is_loaded = is_done || is_loaded_in_vain(use);
	bool has_room, is_known = true;

	FAULT("code: used");
	has_room = code_load_end(&use->image, &use->load, is_loaded ? use->library : NULL);
	/* Whatever was asked of it, its module has a handle now. */
	if (is_loaded && has_room && use->library && device)
		is_known = code_pins_library_loaded(use->library);
	if (is_loaded && has_room && is_known)
		libraries_used(use->library, &use->load.guard.growth);
	libraries_leave();
	if (!has_room || !is_known) {
		undo_use(use, device);
		return is_loaded ? CUDA_ERROR_OUT_OF_MEMORY : r;
	}
	if (is_done)
		marks_put(use->key, use->generation);
	if (is_loaded && use->library) {
		marks_put(use_of(use->library), use->generation);
		note_loaded(use);
	}
	return r;
}

CUresult code_use_end(struct code_use *use, CUresult r)
{
	if (use->key) {
		r = end_use(use, r);
		let_others_go_on(use);
	}
	code_pins_end(&use->pin);
	return r;
}

/* The library of a kernel that stands in a function's place; NULL for a function. */
static CUlibrary library_of(CUfunction function)
{
	CUfunctionLoadingState loading;
	CUlibrary library;

	if (!cuda.cuFuncIsLoaded || cuda.cuFuncIsLoaded(&loading, function) == CUDA_SUCCESS ||
		cuda.cuKernelGetLibrary(&library, (CUkernel)function) != CUDA_SUCCESS)
		return NULL;
	return library;
}

CUresult code_prepare(CUfunction function, struct code_pin *pin)
{
	CUlibrary library;
	CUfunction loaded;
	struct code_use use;
	CUresult r;
	CURRENT_STAYS();

	if (!function)
		return CUDA_SUCCESS;
	if (!libraries_enter(function))
		return CUDA_ERROR_OUT_OF_MEMORY;
	library = library_of(function);
	libraries_leave();
	if (!library)
		return CUDA_SUCCESS;
	r = code_use_kernel_begin((CUkernel)function, &use);
	if (r != CUDA_SUCCESS)
		return r;
	if (!use.key)
		return code_use_end(&use, CUDA_SUCCESS);
	use.outer = pin;
	r = cuda.cuKernelGetFunction(&loaded, (CUkernel)function);
	return code_use_end(&use, r);
}

/* What loading the function's code may take. */
static uint64_t load_bytes(CUfunction function)
{
	CUfunctionLoadingState loading;

	return cuda.cuFuncIsLoaded && cuda.cuFuncIsLoaded(&loading, function) == CUDA_SUCCESS &&
			       loading == CU_FUNCTION_LOADING_STATE_LOADED
		       ? 0
		       : CODE_STEP_BYTES;
}

/*
 * The context in which a launch takes what it needs: a function's own, whatever stream it is launched in, and a kernel's is its stream's. NULL:
 * there is one alone.
 */
static CUcontext place_of(CUstream stream, const struct code_pin *pin)
{
	CUcontext there, own;

	if (!marks_are_by_context())
		return NULL;
	there = contexts_of_stream(stream);
	own = code_pins_context(pin);
	return own && contexts_life_of(own) != contexts_life_of(there) ? own : there;
}

/* In the launch's place. */
static CUresult prepare_launch(struct code_launch *l)
{
	bool is_entered = current_enter(l->place);
	CUresult r = code_prepare(l->function, &l->pin);

	current_leave(is_entered);
	return r;
}

/* Likewise: what it may take. */
static CUresult reserve_launch(struct code_launch *l, uint64_t current)
{
	CUresult r = CUDA_SUCCESS;

	/* Nothing runs while it is captured: heap and frames come when the graph is instantiated. */
	if (!l->capture.is_captured)
		r = runtime_heap_begin(&l->heap_bytes);
	if (r == CUDA_SUCCESS)
		r = guard_begin_current(load_bytes(l->function) + l->heap_bytes, &l->guard);
	l->guard.current = current;
	if (r == CUDA_SUCCESS && !l->capture.is_captured)
		r = local_begin(local_frame_bytes(l->function), &l->local);
	if (r != CUDA_SUCCESS) {
		guard_cancel(&l->guard);
		runtime_heap_end(l->heap_bytes, current);
	}
	return r;
}

CUresult code_launch_pin(CUfunction function, CUstream stream, struct code_pin *ret_pin)
{
	bool is_entered = marks_are_by_context() && current_enter(contexts_of_stream(stream));
	CUresult r = code_pins_function(function, ret_pin);

	current_leave(is_entered);
	return r;
}

/* With the program's context current, of which the stream may be the default one. */
static CUresult launch_begin(struct code_launch *l)
{
	uint64_t current = current_since();
	enum state_mode mode = state_enter();
	CUresult r = CUDA_SUCCESS;
	bool is_entered;

	if (!l->function) /* the driver refuses it */
		return CUDA_SUCCESS;
	r = code_launch_pin(l->function, l->stream, &l->pin);
	if (r == CUDA_SUCCESS)
		l->place = place_of(l->stream, &l->pin);
	if (r == CUDA_SUCCESS && mode == STATE_OPEN)
		r = prepare_launch(l);
	if (r != CUDA_SUCCESS)
		return r;
	capture_enter(l->stream, &l->capture);
	is_entered = current_enter(l->place);
	if (mode == STATE_CLOSED)
		r = local_begin(local_frame_bytes(l->function), &l->local);
	else if (mode == STATE_OPEN)
		r = reserve_launch(l, current);
	current_leave(is_entered);
	return r;
}

CUresult code_launch_begin(CUfunction function, CUstream stream, struct code_launch *ret_launch)
{
	CUresult r;

	*ret_launch = (struct code_launch){.function = function,
		.stream = stream,
		.generation = marks_generation(),
		.local = CHARGE_NULL};
	r = launch_begin(ret_launch);
	if (r != CUDA_SUCCESS) {
		capture_leave(&ret_launch->capture);
		code_pins_end(&ret_launch->pin);
	}
	return r;
}

/* It is found by its stream's context. */
static void mark_launched(const struct code_launch *l)
{
	bool is_entered = marks_are_by_context() && current_enter(contexts_of_stream(l->stream));

	marks_put((uintptr_t)l->function, l->generation);
	current_leave(is_entered);
}

void code_launch_end(struct code_launch *launch, CUresult r)
{
	bool is_entered = current_enter(launch->place);

	FAULT("code: launched");
	capture_leave(&launch->capture);
	if (launch->guard.is_armed) {
		local_end(&launch->local);
		runtime_heap_look();
		guard_end(&launch->guard);
	}
	runtime_heap_end(launch->heap_bytes, launch->guard.current);
	current_leave(is_entered);
	if (r == CUDA_SUCCESS && launch->capture.has_run && current_is_same(launch->guard.current))
		mark_launched(launch);
	code_pins_end(&launch->pin);
}

void code_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		first_uses[i] = (struct lock)LOCK_INIT;
}
