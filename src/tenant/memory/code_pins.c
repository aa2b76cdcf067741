/* SPDX-License-Identifier: Apache-2.0 */
/* Code that calls under way use. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/code_pins.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/table.h"
#include "tenant/slice/state.h"

/* Longest wait of an unloading for calls, of which one may compile; and of a call for an unloading of what had its handle before. */
#define CALLS_WAIT_NS  UINT64_C(60000000000)
#define UNLOAD_WAIT_NS UINT64_C(10000000000)

/* A handle that is another one's each time that it is asked for is not the program's any more. */
#define TRIES_MOST 8

static struct table
	owners; /* key: a module or library; a: calls under way; b: 1 while it is unloaded */

static struct table modules; /* of libraries, in contexts. key: the module; a: the library */

static bool is_same(const struct code_pin *a, const struct code_pin *b)
{
	return a->owners[0] == b->owners[0] && a->owners[1] == b->owners[1] &&
	       a->is_library == b->is_library;
}

/* What the driver says that it is of. */
static CUresult find_owners(CUfunction function, struct code_pin *ret_owners)
{
	CUfunctionLoadingState loading;
	struct table_entry entry;
	CUlibrary library = NULL;
	CUmodule module = NULL;
	CUresult r;

	*ret_owners = (struct code_pin){.owners = {0}};
	if (!cuda.cuFuncIsLoaded || !cuda.cuKernelGetLibrary || !cuda.cuFuncGetModule)
		return CUDA_SUCCESS;
	r = cuda.cuFuncIsLoaded(&loading, function);
	if (r != CUDA_SUCCESS) {
		CUresult other = cuda.cuKernelGetLibrary(&library, (CUkernel)function);

		if (other == CUDA_SUCCESS) {
			ret_owners->owners[0] = (uintptr_t)library;
			ret_owners->is_library = library != NULL;
		}
		/* What else the driver answers is of something else than the handle. */
		return r == CUDA_ERROR_INVALID_HANDLE && other == r ? r : CUDA_SUCCESS;
	}
	if (cuda.cuFuncGetModule(&module, function) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	ret_owners->owners[0] = (uintptr_t)module;
	if (module && table_get(&modules, (uintptr_t)module, &entry) == 0)
		ret_owners->owners[1] = entry.a;
	return CUDA_SUCCESS;
}

/* CUDA_ERROR_NOT_READY: it is being unloaded. */
static CUresult try_pin(uint64_t owner)
{
	TABLE_SCOPE place = table_enter(&owners, owner, true);

	if (!place.entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (place.entry->b)
		return CUDA_ERROR_NOT_READY;
	place.entry->a++;
	return CUDA_SUCCESS;
}

static void unpin(uint64_t owner)
{
	TABLE_SCOPE place = table_enter(&owners, owner, false);

	if (place.entry && --place.entry->a == 0)
		table_remove(&place);
}

void code_pins_end(struct code_pin *pin)
{
	for (unsigned i = 0; i < 2; i++)
		if (pin->owners[i])
			unpin(pin->owners[i]);
	*pin = (struct code_pin){.owners = {0}};
}

static CUresult pin_all(const struct code_pin *wanted, struct code_pin *ret_pin)
{
	CUresult r = CUDA_SUCCESS;

	*ret_pin = (struct code_pin){.is_library = wanted->is_library};
	for (unsigned i = 0; i < 2 && r == CUDA_SUCCESS; i++) {
		if (!wanted->owners[i])
			continue;
		r = try_pin(wanted->owners[i]);
		if (r == CUDA_SUCCESS)
			ret_pin->owners[i] = wanted->owners[i];
	}
	if (r != CUDA_SUCCESS)
		code_pins_end(ret_pin);
	return r;
}

/* Waits where the handle is still that of what another thread is unloading, and may be of the next one already. */
static CUresult pin_patiently(const struct code_pin *wanted, struct code_pin *ret_pin)
{
	CUresult r = pin_all(wanted, ret_pin);
	struct patience patience;

	if (LIKELY(r != CUDA_ERROR_NOT_READY))
		return r;
	patience = patience_begin(UNLOAD_WAIT_NS);
	for (unsigned i = 0; r == CUDA_ERROR_NOT_READY; i++) {
		if (patience_is_over(&patience))
			return CUDA_ERROR_INVALID_HANDLE;
		lock_rest(i);
		r = pin_all(wanted, ret_pin);
	}
	return r;
}

/* While the handle is nobody's that the library itself is unloading. */
static CUresult ask(CUfunction function, struct code_pin *ret_owners)
{
	CUresult r;

	if (!libraries_enter(function))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = find_owners(function, ret_owners);
	libraries_leave();
	return r;
}

/* It may have become another one's before it was pinned, so it is asked for again. */
static CUresult pin_function(CUfunction function, struct code_pin *ret_pin)
{
	struct code_pin found, again;
	CUresult r = ask(function, &found);

	for (unsigned i = 0; i < TRIES_MOST && r == CUDA_SUCCESS; i++) {
		r = pin_patiently(&found, ret_pin);
		FAULT("code: pinned");
		if (r != CUDA_SUCCESS || !found.owners[0])
			return r;
		r = ask(function, &again);
		if (r == CUDA_SUCCESS && is_same(&found, &again))
			return r;
		code_pins_end(ret_pin);
		found = again;
	}
	return r == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : r;
}

CUresult code_pins_function(CUfunction function, struct code_pin *ret_pin)
{
	*ret_pin = (struct code_pin){.owners = {0}};
	return !function || state_enter() == STATE_ASIDE ? CUDA_SUCCESS
							 : pin_function(function, ret_pin);
}

CUresult code_pins_library(CUlibrary library, struct code_pin *ret_pin)
{
	const struct code_pin wanted = {
		.owners = {(uintptr_t)library}, .is_library = library != NULL};

	*ret_pin = (struct code_pin){.owners = {0}};
	return !library || state_enter() == STATE_ASIDE ? CUDA_SUCCESS
							: pin_patiently(&wanted, ret_pin);
}

static bool is_in_use(const void *owner)
{
	struct table_entry entry;

	return table_get(&owners, (uintptr_t)owner, &entry) == 0;
}

bool code_pins_wait(const void *owner)
{
	struct patience patience = patience_begin(CALLS_WAIT_NS);

	for (unsigned i = 0; owner && is_in_use(owner); i++) {
		if (patience_is_over(&patience)) {
			log_error("a call that uses code takes too long, so that is not unloaded");
			return false;
		}
		lock_rest(i);
	}
	return true;
}

CUresult code_pins_unload_begin(const void *owner)
{
	if (!owner)
		return CUDA_SUCCESS;
	TABLE_SCOPE place = table_enter(&owners, (uintptr_t)owner, true);
	if (!place.entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (place.entry->a || place.entry->b)
		return CUDA_ERROR_NOT_READY;
	place.entry->b = 1;
	return CUDA_SUCCESS;
}

static bool is_of_library(const struct table_entry *entry, uint64_t library)
{
	return entry->a == library;
}

void code_pins_unload_end(const void *owner, bool is_gone)
{
	struct table_cursor cursor = {0};
	struct table_entry entry;

	while (owner && is_gone &&
		table_take_next(&modules, is_of_library, (uintptr_t)owner, &cursor, &entry) == 0)
		continue;
	if (!owner)
		return;
	TABLE_SCOPE place = table_enter(&owners, (uintptr_t)owner, false);
	if (place.entry)
		table_remove(&place);
}

bool code_pins_module_of(CUmodule module, CUlibrary library)
{
	struct table_entry entry = {.key = (uintptr_t)module, .a = (uintptr_t)library};

	if (!module || !library || table_put(&modules, entry) == 0)
		return true;
	log_error("no memory for our own tables, so a use of a library is refused");
	return false;
}

bool code_pins_function_of(CUfunction function, CUlibrary library)
{
	CUfunctionLoadingState loading;
	CUmodule module;

	return !library || !cuda.cuFuncIsLoaded || !cuda.cuFuncGetModule ||
	       cuda.cuFuncIsLoaded(&loading, function) != CUDA_SUCCESS ||
	       cuda.cuFuncGetModule(&module, function) != CUDA_SUCCESS ||
	       code_pins_module_of(module, library);
}

void code_pins_module(CUmodule module)
{
	if (module && table_take(&modules, (uintptr_t)module, NULL) == 0)
		log_debug("a module has the handle of a library's that ended with its context");
}

void code_pins_reset_after_fork(void)
{
	table_forget(&owners);
	table_forget(&modules);
}
