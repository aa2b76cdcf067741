/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: what their images tell, and the end of one that did not fit. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/libraries.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/code_uses.h"
#include "tenant/memory/guard.h"
#include "tenant/memory/makings.h"
#include "tenant/memory/marks.h"
#include "tenant/memory/table.h"

/* Longest wait for an unloading of ours, and of that for calls under way, of which one may compile. */
#define ENTER_WAIT_NS  UINT64_C(11000000000)
#define UNLOAD_WAIT_NS UINT64_C(10000000000)

/* Longest wait of a call for those under way, where an unloading was put off for one of these. */
#define PENDING_WAIT_NS UINT64_C(50000000)

/* What is known of a library. */
#define HAS_HEAP   1u
#define HAS_PRINTF 2u
#define IS_KNOWN   4u
#define IS_USED	   8u

/*
 * key: the library; a: bytes, of its image or as measured; b: of managed variables; c: the above; d: its number
 * (table_number()).
 */
static struct table libraries;

/* Contexts in which a library is loaded. key: a hash of both; a: its number; b: the context's life. */
static struct table loaded_in;

/* key: a library that was unloaded here, or a kernel of one. */
static struct table gone;
static _Atomic uint32_t gone_count;

/* key: a library that will be unloaded when no call is under way; a: the ordinal of the device that it did not fit. */
static struct table pending;
static _Atomic uint32_t pending_count;
static _Atomic uint32_t ended_calls; /* that may have kept one of these */

static bool is_any_gone(void)
{
	return UNLIKELY(atomic_load(&gone_count) > 0);
}

/* Calls under way with libraries and kernels; UNLOADING: one is being unloaded, or will be after them. */
#define UNLOADING UINT32_C(0x80000000)
static _Atomic uint32_t calls;

/* Calls that overlap would hold an unloading off for ever. */
static void let_calls_end(void)
{
	uint64_t deadline = clock_now_ns() + PENDING_WAIT_NS;

	for (unsigned i = 0; atomic_load(&pending_count) > 0 && atomic_load(&calls) > 0; i++) {
		if (clock_now_ns() > deadline)
			return;
		lock_rest(i);
	}
}

bool libraries_enter(const void *handle)
{
	uint64_t deadline = clock_now_ns() + ENTER_WAIT_NS;
	uint32_t before;

	if (UNLIKELY(atomic_load(&pending_count) > 0))
		let_calls_end();
	before = atomic_load(&calls);
	for (unsigned i = 0;; i++) {
		if (before & UNLOADING) {
			if (clock_now_ns() > deadline)
				return false;
			lock_rest(i);
			before = atomic_load(&calls);
		} else if (atomic_compare_exchange_weak(&calls, &before, before + 1)) {
			break;
		}
	}
	FAULT("libraries: entered");
	if (!is_any_gone() || table_get(&gone, (uintptr_t)handle, NULL) != 0)
		return true;
	libraries_leave();
	log_info("a library that was unloaded because it did not fit is refused");
	return false;
}

/* No call is under way, and none begins until end_unloading(). */
static bool begin_unloading(void)
{
	uint64_t deadline = clock_now_ns() + UNLOAD_WAIT_NS;

	for (unsigned i = 0; atomic_fetch_or(&calls, UNLOADING) & UNLOADING; i++) {
		if (clock_now_ns() > deadline)
			return false;
		lock_rest(i);
	}
	for (unsigned i = 0; atomic_load(&calls) != UNLOADING; i++) {
		if (clock_now_ns() > deadline) {
			atomic_fetch_and(&calls, ~UNLOADING);
			return false;
		}
		lock_rest(i);
	}
	return true;
}

static void end_unloading(void)
{
	atomic_fetch_and(&calls, ~UNLOADING);
}

/* All kernels of a library; false where the driver cannot tell, or without memory. */
static bool list_kernels(CUlibrary library, CUkernel **ret_kernels, unsigned *ret_count)
{
	unsigned count = 0;
	CUkernel *kernels;

	if (cuda.cuLibraryGetKernelCount(&count, library) != CUDA_SUCCESS)
		return false;
	kernels = FAULT_OUT_OF_MEMORY() ? NULL : calloc(count + 1, sizeof(*kernels));
	if (!kernels)
		return false;
	*ret_kernels = kernels;
	*ret_count = count;
	return count == 0 ||
	       cuda.cuLibraryEnumerateKernels(kernels, count, library) == CUDA_SUCCESS;
}

static bool bury(const void *handle)
{
	TABLE_SCOPE place = table_enter(&gone, (uintptr_t)handle, true);

	if (place.entry && place.entry->a == 0)
		atomic_fetch_add(&gone_count, 1);
	if (place.entry)
		place.entry->a = 1;
	return place.entry;
}

/* The driver has given the handle out again, or the library stays after all. */
static bool dig_up(const void *handle)
{
	bool was_gone = table_take(&gone, (uintptr_t)handle, NULL) == 0;

	if (was_gone)
		atomic_fetch_sub(&gone_count, 1);
	return was_gone;
}

static void dig_up_all(CUlibrary library, CUkernel const *kernels, unsigned count)
{
	dig_up(library);
	for (unsigned i = 0; i < count; i++)
		dig_up(kernels[i]);
}

static bool bury_all(CUlibrary library, CUkernel const *kernels, unsigned count)
{
	bool is_done = bury(library);

	for (unsigned i = 0; i < count && is_done; i++)
		is_done = bury(kernels[i]);
	if (!is_done)
		dig_up_all(library, kernels, count);
	return is_done;
}

/*
 * What is known is forgotten before the driver is asked to unload it. So where the handle is known another thread has unloaded one of the two
 * before it was entered here, and nobody can say which.
 */
static bool enter(const struct table_entry *library)
{
	TABLE_SCOPE place = table_enter(&libraries, library->key, true);

	if (!place.entry)
		return false;
	if (place.entry->d) {
		log_error("a library was unloaded while it was loaded, so it is refused");
		return false;
	}
	*place.entry = *library;
	return true;
}

bool libraries_keep(CUlibrary library, const struct image *image)
{
	struct table_entry entry = {.key = (uintptr_t)library, .d = table_number()};

	if (state_enter() != STATE_OPEN)
		return true;
	if (image->is_known) {
		entry.a = image->device_bytes;
		entry.b = image->managed_bytes;
		entry.c = IS_KNOWN | (image->has_heap ? HAS_HEAP : 0) |
			  (image->has_printf ? HAS_PRINTF : 0);
	}
	FAULT("libraries: loaded");
	libraries_given(library);
	libraries_given_library(library);
	return enter(&entry);
}

static bool is_of_number(const struct table_entry *entry, uint64_t number)
{
	return entry->a == number;
}

static bool is_of_life(const struct table_entry *entry, uint64_t life)
{
	return entry->b == life;
}

static void forget_loaded(table_wanted_fn *is_wanted, uint64_t what)
{
	struct table_cursor cursor = {0};
	struct table_entry entry;

	while (table_take_next(&loaded_in, is_wanted, what, &cursor, &entry) == 0)
		continue;
}

void libraries_life_ended(struct device *device, uint64_t life)
{
	(void)device;
	forget_loaded(is_of_life, life);
}

/* Unless the driver has given its handle to another one by now, which it was not asked to unload. */
static void know_again(const struct table_entry *known)
{
	TABLE_SCOPE place = table_enter(&libraries, known->key, true);

	if (place.entry && !place.entry->d)
		*place.entry = *known;
}

CUresult libraries_end(CUlibrary library)
{
	struct table_entry known;
	bool is_known = table_take(&libraries, (uintptr_t)library, &known) == 0;
	uint64_t unloading = marks_unload_begin(library);
	CUresult r = cuda.cuLibraryUnload(library);

	FAULT("libraries: the driver was asked to unload");
	if (is_known && r == CUDA_SUCCESS)
		forget_loaded(is_of_number, known.d);
	else if (is_known)
		know_again(&known);
	marks_unload_end(library, unloading, r == CUDA_SUCCESS);
	return r;
}

struct image libraries_image(CUlibrary library)
{
	struct table_entry entry;

	if (!library || table_get(&libraries, (uintptr_t)library, &entry) != 0)
		return (struct image){.is_known = false};
	return (struct image){.is_known = entry.c & IS_KNOWN,
		.device_bytes = entry.a,
		.managed_bytes = entry.b,
		.has_heap = entry.c & HAS_HEAP,
		.has_printf = entry.c & HAS_PRINTF};
}

uint64_t libraries_number(CUlibrary library)
{
	struct table_entry entry;

	return library && table_get(&libraries, (uintptr_t)library, &entry) == 0 ? entry.d : 0;
}

void libraries_loaded_in(uint64_t number, uint64_t life)
{
	struct table_entry entry = {.key = table_key_of(number, life), .a = number, .b = life};

	if (number && life && table_put(&loaded_in, entry) != 0)
		log_debug("what a library takes is asked for once more");
}

bool libraries_is_loaded_in(CUlibrary library, uint64_t life)
{
	uint64_t number = libraries_number(library);
	struct table_entry entry;

	return number && life && table_get(&loaded_in, table_key_of(number, life), &entry) == 0 &&
	       entry.a == number && entry.b == life;
}

void libraries_used(CUlibrary library, const struct growth *growth)
{
	uint64_t bytes =
		growth->is_told && growth->charged_bytes > 0 ? (uint64_t)growth->charged_bytes : 0;

	if (!library)
		return;
	TABLE_SCOPE place = table_enter(&libraries, (uintptr_t)library, false);
	if (!place.entry)
		return;
	place.entry->c |= IS_USED;
	/* A figure that is not certain is better than none, and no better than another one. */
	if (!(place.entry->c & IS_KNOWN) && bytes > place.entry->a &&
		(growth->is_certain || place.entry->a == 0))
		place.entry->a = bytes;
}

static bool was_used(CUlibrary library)
{
	struct table_entry entry;

	return table_get(&libraries, (uintptr_t)library, &entry) != 0 || entry.c & IS_USED;
}

/* What the unloading gives back of another device than the current context's is found by the next comparison. */
static void begin_guard(struct device *device, struct guard *ret_guard)
{
	uint64_t since = current_since();
	struct device *current;

	ret_guard->is_armed = false;
	if (state_current_device(&current) == CUDA_SUCCESS && current == device &&
		guard_begin(device, 0, ret_guard) != CUDA_SUCCESS)
		log_debug("what a library gives back is found later");
	ret_guard->current = since;
}

/* While nobody else is at a library. */
static bool unload(CUlibrary library, struct device *device)
{
	_cleanup_free_ CUkernel *kernels = NULL;
	struct guard guard;
	unsigned count = 0;
	bool is_gone;

	if (was_used(library) || !list_kernels(library, &kernels, &count) ||
		!bury_all(library, kernels, count))
		return false;
	FAULT("libraries: unloading");
	begin_guard(device, &guard);
	guard.is_end = true;
	is_gone = libraries_end(library) == CUDA_SUCCESS;
	if (!is_gone)
		dig_up_all(library, kernels, count);
	guard_end(&guard);
	return is_gone;
}

static bool may_go(const struct table_entry *entry, uint64_t what)
{
	(void)what;
	return code_uses_unload_begin(entry->key) == CUDA_SUCCESS;
}

/* While nobody else is at a library. What is used still stays in the table. */
static void unload_pending(void)
{
	struct table_cursor cursor = {0};
	struct table_entry entry;

	if (!makings_try_change_begin())
		return;
	while (table_take_next(&pending, may_go, 0, &cursor, &entry) == 0) {
		CUlibrary library = (CUlibrary)(uintptr_t)entry.key;

		atomic_fetch_sub(&pending_count, 1);
		/* It stays where a call that was under way has given out something of it. */
		if (unload(library, state_device((CUdevice)entry.a)))
			log_info("a library that did not fit was unloaded");
		else
			libraries_given_library(library);
		code_uses_unload_end(entry.key);
	}
	makings_change_end();
}

/* Where a call is under way the last of these does it. */
void libraries_unload_put_off(void)
{
	uint32_t seen, none;

	if (LIKELY(atomic_load(&pending_count) == 0))
		return;
	/* pairs with the load at the end: who is at it sees that it has to look again, or is seen to have ended */
	atomic_fetch_add(&ended_calls, 1);
	do {
		none = 0;
		seen = atomic_load(&ended_calls);
		if (!atomic_compare_exchange_strong(&calls, &none, UNLOADING))
			return;
		FAULT("libraries: unloading what was put off");
		unload_pending();
		end_unloading();
	} while (atomic_load(&ended_calls) != seen && atomic_load(&pending_count) > 0);
}

void libraries_leave(void)
{
	if (atomic_fetch_sub(&calls, 1) == 1)
		libraries_unload_put_off();
}

/* From now on no call gets to it, and the last of those that are under way unloads it. While none unloads it. */
static void defer(CUlibrary library, const struct device *device)
{
	_cleanup_free_ CUkernel *kernels = NULL;
	struct table_entry entry = {.key = (uintptr_t)library, .a = (uint64_t)device->ordinal};
	unsigned count = 0;

	if (was_used(library) || !list_kernels(library, &kernels, &count) ||
		!bury_all(library, kernels, count))
		return;
	if (table_put(&pending, entry) == 0)
		atomic_fetch_add(&pending_count, 1);
	else
		dig_up_all(library, kernels, count);
}

static void put_off(CUlibrary library, const struct device *device)
{
	if (!libraries_enter(library))
		return;
	defer(library, device);
	FAULT("libraries: put off");
	libraries_leave();
}

/* No call uses it, this thread's included, and no executable graph is made. */
static bool begin_unused(CUlibrary library)
{
	if (!makings_try_change_begin())
		return false;
	if (code_uses_unload_begin((uintptr_t)library) == CUDA_SUCCESS)
		return true;
	makings_change_end();
	return false;
}

bool libraries_unload(CUlibrary library, struct device *device)
{
	bool is_gone = false;

	if (!begin_unloading()) {
		put_off(library, device);
		return false;
	}
	if (begin_unused(library)) {
		is_gone = unload(library, device);
		code_uses_unload_end((uintptr_t)library);
		makings_change_end();
	} else {
		defer(library, device);
	}
	end_unloading();
	libraries_unload_put_off();
	return is_gone;
}

bool libraries_unloaded(CUlibrary library)
{
	/* The handle is good for nothing until the driver has unloaded it, too. */
	return table_get(&pending, (uintptr_t)library, NULL) == 0 || dig_up(library);
}

void libraries_given(const void *handle)
{
	if (is_any_gone() && handle)
		dig_up(handle);
}

void libraries_given_library(CUlibrary library)
{
	_cleanup_free_ CUkernel *kernels = NULL;
	unsigned count = 0;

	if (is_any_gone() && list_kernels(library, &kernels, &count))
		dig_up_all(library, kernels, count);
}

/* Asked once more, because the program's memory may be changed by now. */
void libraries_given_module(CUmodule module)
{
	_cleanup_free_ CUfunction *functions = NULL;
	unsigned count = 0;

	if (!is_any_gone() || !cuda.cuModuleGetFunctionCount ||
		cuda.cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS)
		return;
	functions = calloc(count + 1, sizeof(*functions));
	if (!functions || cuda.cuModuleEnumerateFunctions(functions, count, module) != CUDA_SUCCESS)
		return;
	for (unsigned i = 0; i < count; i++)
		dig_up(functions[i]);
}

void libraries_reset_after_fork(void)
{
	table_forget(&libraries);
	table_forget(&loaded_in);
	table_forget(&gone);
	table_forget(&pending);
	atomic_store(&gone_count, 0);
	atomic_store(&pending_count, 0);
	atomic_store(&ended_calls, 0);
	atomic_store(&calls, 0);
}
