/* SPDX-License-Identifier: Apache-2.0 */
/* The device's own runtime, context by context. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/runtime.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/table.h"

/* Estimates, rounded up (H200, driver 580); the slice remembers what each was measured to take. */
#define HEAP_RUNTIME_BYTES   UINT64_C(0x8c00000)
#define PRINTF_RUNTIME_BYTES UINT64_C(0x4000000)
/* A measured figure outside these bounds measured something else. */
#define MEASURED_MIN_PART  4
#define MEASURED_MAX_TIMES 16
#define HEAP_EXTRA_BYTES   UINT64_C(0x200000)
#define STEP_BYTES	   UINT64_C(0x200000)

/* Longest wait of a launch for a limit, and of a limit for launches. */
#define LIMIT_WAIT_NS UINT64_C(1000000000)

/* What is known of a context. */
#define HAS_HEAP_RUNTIME   1u
#define HAS_PRINTF_RUNTIME 2u
#define HEAP_IS_EXPECTED   4u
#define HAS_HEAP	   8u
#define HEAP_IS_BOOKED \
	16u /* and was not there when it was looked for: it hides nothing that others take */

/* key: the context's life; a: the above; b: bytes booked for a heap that may come. */
static struct table contexts;

/* Calls under way that may bring a heap; LIMIT_CHANGES: a limit is being changed. */
#define LIMIT_CHANGES UINT32_C(0x80000000)
static _Atomic uint32_t heap_calls;

static _Atomic uint32_t booked_heaps; /* contexts with HEAP_IS_BOOKED */

/* A context that is not in the books has nothing for certain, and may need all. */
static struct table_entry known(uint64_t life)
{
	struct table_entry entry = {.a = HEAP_IS_EXPECTED};

	if (life && table_get(&contexts, life, &entry) != 0)
		entry.a = 0;
	return entry;
}

/* False without memory. */
static bool note(uint64_t life, uint64_t flags)
{
	if (!life)
		return true;
	TABLE_SCOPE place = table_enter(&contexts, life, true);
	if (place.entry)
		place.entry->a |= flags;
	return place.entry;
}

static uint64_t limit_bytes(CUlimit limit)
{
	size_t bytes = 0;

	if (!cuda.cuCtxGetLimit || cuda.cuCtxGetLimit(&bytes, limit) != CUDA_SUCCESS)
		return 0;
	return round_up_u64(bytes, STEP_BYTES);
}

/* Where the slice remembers what one of them takes of the current context's device; NULL: nowhere. */
static _Atomic uint64_t *place_of(uint64_t which)
{
	struct region_device *entry;
	struct device *device;

	if (state_enter() != STATE_OPEN || state_current_device(&device) != CUDA_SUCCESS)
		return NULL;
	entry = &state.region.file->own.devices[device->entry];
	return which == HAS_HEAP_RUNTIME ? &entry->heap_runtime_bytes
					 : &entry->printf_runtime_bytes;
}

static uint64_t estimate_of(uint64_t which)
{
	return which == HAS_HEAP_RUNTIME ? HEAP_RUNTIME_BYTES : PRINTF_RUNTIME_BYTES;
}

static bool is_credible(uint64_t bytes, uint64_t which)
{
	return bytes >= estimate_of(which) / MEASURED_MIN_PART &&
	       bytes <= estimate_of(which) * MEASURED_MAX_TIMES;
}

static uint64_t expected_bytes(uint64_t which)
{
	const _Atomic uint64_t *place = place_of(which);
	/* relaxed: a figure that is not there yet is measured once more */
	uint64_t bytes = place ? atomic_load_explicit(place, memory_order_relaxed) : 0;

	return is_credible(bytes, which) ? bytes : estimate_of(which);
}

/*
 * Only the first image of a context that brings one of them, and none before that might have brought it unsaid, tells
 * what that takes. Every such figure corrects the one that is remembered.
 */
static void learn(const struct image *image, uint64_t flags, uint64_t grown_bytes)
{
	uint64_t which = image->has_heap ? HAS_HEAP_RUNTIME : HAS_PRINTF_RUNTIME, bytes;
	_Atomic uint64_t *place;

	if (!image->is_known || image->has_heap == image->has_printf ||
		flags & (which | HEAP_IS_EXPECTED) || (uint64_t)grown_bytes < image->device_bytes)
		return;
	bytes = round_up_u64(grown_bytes - image->device_bytes, REGION_UNIT_BYTES);
	place = is_credible(bytes, which) ? place_of(which) : NULL;
	if (place)
		/* relaxed: as in expected_bytes() */
		atomic_store_explicit(place, bytes, memory_order_relaxed);
}

static uint64_t load_bytes(const struct image *image)
{
	uint64_t flags = known(contexts_life_current()).a, bytes = 0, fifo, expected;

	if (image->has_heap && !(flags & HAS_HEAP_RUNTIME))
		bytes = expected_bytes(HAS_HEAP_RUNTIME);
	if (image->has_printf && !(flags & HAS_PRINTF_RUNTIME)) {
		fifo = limit_bytes(CU_LIMIT_PRINTF_FIFO_SIZE);
		expected = expected_bytes(HAS_PRINTF_RUNTIME);
		bytes = sum_u64(bytes, fifo > expected ? fifo : expected);
	}
	return bytes;
}

CUresult runtime_load_begin(const struct image *image, uint64_t *ret_bytes)
{
	*ret_bytes = image->has_heap || image->has_printf ? load_bytes(image) : 0;
	/* What is known afterwards has its place before. */
	if (image->is_known && !image->has_heap && !image->has_printf)
		return CUDA_SUCCESS;
	if (note(contexts_life_current(), 0))
		return CUDA_SUCCESS;
	log_error("no memory for our own tables, so an image is refused");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

bool runtime_load_is_open(const struct image *image)
{
	uint64_t flags = known(contexts_life_current()).a;

	return !image->is_known || (image->has_heap && flags & HAS_HEAP_RUNTIME) ||
	       (image->has_printf && flags & HAS_PRINTF_RUNTIME);
}

void runtime_loaded(const struct image *image, bool is_there, uint64_t life, uint64_t grown_bytes)
{
	uint64_t flags = 0;

	if (is_there && (image->has_heap || image->has_printf))
		learn(image, known(life).a, grown_bytes);
	/* An image that the driver refused brought no runtime, and the next one may bring it. */
	if (is_there && image->has_heap)
		flags |= HAS_HEAP_RUNTIME;
	if (is_there && image->has_printf)
		flags |= HAS_PRINTF_RUNTIME;
	if (image->has_heap || !image->is_known)
		flags |= HEAP_IS_EXPECTED;
	if (flags && !note(life, flags))
		state_on_failure("runtime", "a context is not known any more");
}

static bool wait_until(uint32_t most, uint32_t change)
{
	struct patience patience = patience_begin(LIMIT_WAIT_NS);
	uint32_t calls = atomic_load(&heap_calls);

	for (unsigned i = 0;; i++) {
		if (calls > most) {
			if (patience_is_over(&patience))
				return false;
			lock_rest(i);
			calls = atomic_load(&heap_calls);
		} else if (atomic_compare_exchange_weak(&heap_calls, &calls, calls + change)) {
			return true;
		}
	}
}

CUresult runtime_heap_begin(uint64_t *ret_bytes)
{
	uint64_t flags = 0;

	*ret_bytes = 0;
	runtime_heap_look();
	if (state_enter() == STATE_OPEN)
		flags = known(contexts_life_current()).a;
	if (!(flags & HEAP_IS_EXPECTED) || flags & HAS_HEAP)
		return CUDA_SUCCESS;
	if (!wait_until(LIMIT_CHANGES - 2, 1)) {
		log_error("a limit of the heap is being changed, so a launch is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("runtime: limits stand still");
	*ret_bytes = sum_u64(limit_bytes(CU_LIMIT_MALLOC_HEAP_SIZE), HEAP_EXTRA_BYTES);
	return CUDA_SUCCESS;
}

/* The limit of a heap that is there cannot be changed any more, not even to what it is. */
static bool is_heap_there(void)
{
	size_t bytes;

	return cuda.cuCtxGetLimit &&
	       cuda.cuCtxGetLimit(&bytes, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS &&
	       cuda.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, bytes) == CUDA_ERROR_INVALID_VALUE;
}

void runtime_heap_end(uint64_t bytes, uint64_t since)
{
	bool is_there;
	uint64_t life;

	if (!bytes)
		return;
	/* Not by what the call took: nodes of a graph, code, or what others took may be as much. */
	is_there = is_heap_there();
	life = contexts_life_current();
	/* Where it cannot be noted, room is reserved for it again. */
	if (is_there && current_is_same(since) && !note(life, HAS_HEAP))
		log_debug("no memory for our own tables");
	atomic_fetch_sub(&heap_calls, 1);
}

void runtime_heap_look(void)
{
	uint64_t since = current_since(), life;
	struct device *device;
	bool is_there;

	/* relaxed: a thread whose call brings a heap knows of its booking */
	if (!atomic_load_explicit(&booked_heaps, memory_order_relaxed))
		return;
	life = contexts_life_current();
	if (!(known(life).a & HEAP_IS_BOOKED) || state_current_device(&device) != CUDA_SUCCESS ||
		!wait_until(LIMIT_CHANGES - 2, 1))
		return;
	is_there = is_heap_there();
	atomic_fetch_sub(&heap_calls, 1);
	if (!is_there || !current_is_same(since))
		return;
	TABLE_SCOPE place = table_enter(&contexts, life, false);
	if (!place.entry || !(place.entry->a & HEAP_IS_BOOKED))
		return;
	place.entry->a &= ~(uint64_t)HEAP_IS_BOOKED;
	charge_show(device, place.entry->b, CHARGE_MODULE);
	atomic_fetch_sub(&booked_heaps, 1);
}

void runtime_heap_keep(struct charge *charge)
{
	uint64_t life = contexts_life_current();
	struct device *device = charge->device;

	if (!charge->device || !life)
		return;
	if (!current_is_same(charge->current)) {
		log_warn("memory stays counted until the process ends");
		charge_take(charge);
		return;
	}
	TABLE_SCOPE place = table_enter(&contexts, life, true);
	if (!place.entry || place.entry->a & HAS_HEAP)
		return;
	place.entry->a |= HAS_HEAP | HEAP_IS_BOOKED;
	place.entry->b = charge_take(charge);
	charge_hide(device, place.entry->b, CHARGE_MODULE);
	atomic_fetch_add(&booked_heaps, 1);
	FAULT("runtime: a heap is booked");
}

/* What is booked for a heap that has not come follows its limit. */
static CUresult set_heap_limit(size_t value)
{
	uint64_t since = current_since(), life = contexts_life_current(), booked = known(life).b;
	uint64_t wanted = sum_u64(round_up_u64(value, STEP_BYTES), HEAP_EXTRA_BYTES);
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r = CUDA_SUCCESS;

	if (booked && wanted > booked)
		r = charge_reserve_current(wanted - booked, CHARGE_MODULE, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, value);
	if (r == CUDA_SUCCESS && charge.device && !current_is_same(since)) {
		log_warn("memory stays counted until the process ends");
		charge_take(&charge);
	}
	if (r == CUDA_SUCCESS && charge.device) {
		struct device *device = charge.device;
		uint64_t more;
		TABLE_SCOPE place = table_enter(&contexts, life, false);

		if (place.entry) {
			more = charge_take(&charge);
			place.entry->b += more;
			if (place.entry->a & HEAP_IS_BOOKED)
				charge_hide(device, more, CHARGE_MODULE);
		}
	}
	return r;
}

CUresult runtime_set_limit(CUlimit limit, size_t value)
{
	CUresult r;

	if (limit != CU_LIMIT_MALLOC_HEAP_SIZE || state_enter() != STATE_OPEN)
		return cuda.cuCtxSetLimit(limit, value);
	if (!wait_until(0, LIMIT_CHANGES))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = set_heap_limit(value);
	atomic_fetch_sub(&heap_calls, LIMIT_CHANGES);
	return r;
}

void runtime_life_ended(struct device *device, uint64_t life)
{
	struct table_entry entry;

	if (table_take(&contexts, life, &entry) != 0 || !entry.b)
		return;
	charge_give_back(device, entry.b, entry.a & HEAP_IS_BOOKED ? CHARGE_SHARED : CHARGE_MODULE);
	if (entry.a & HEAP_IS_BOOKED)
		atomic_fetch_sub(&booked_heaps, 1);
}

void runtime_reset_after_fork(void)
{
	table_forget(&contexts);
	atomic_store(&booked_heaps, 0);
	atomic_store(&heap_calls, 0);
}
