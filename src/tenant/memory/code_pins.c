/* SPDX-License-Identifier: Apache-2.0 */
/* Code that calls under way use. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/code_pins.h"

#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/current.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/code_uses.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/launching.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/makings.h"
#include "tenant/memory/marks.h"
#include "tenant/memory/table.h"
#include "tenant/slice/parts.h"
#include "tenant/slice/state.h"

/* Longest wait of a call for an unloading of what had its handle before. */
#define UNLOAD_WAIT_NS UINT64_C(10000000000)

/* A handle that is another one's each time that it is asked for is not the program's any more. */
#define TRIES_MOST 8

static struct table
	modules; /* key: the module; a: the library, of which it is one in a context, or 0; b: the context's life; c: that context; d: its number */

static bool is_same(const struct code_pin *a, const struct code_pin *b)
{
	return memcmp(a->owners, b->owners, sizeof(a->owners)) == 0 &&
	       a->is_library == b->is_library;
}

static bool is_function(CUfunction function, CUresult *ret_answer)
{
	CUfunctionLoadingState loading;

	*ret_answer = cuda.cuFuncIsLoaded(&loading, function);
	return *ret_answer == CUDA_SUCCESS;
}

/* The library of a kernel in a function's place, as the driver answers. */
static CUresult find_library(CUfunction function, CUlibrary *ret_library)
{
	CUresult r = cuda.cuKernelGetLibrary(ret_library, (CUkernel)function);

	if (r != CUDA_SUCCESS)
		*ret_library = NULL;
	return r;
}

/*
 * What the driver says that it is of. Asked for the module of what has just become a kernel, the driver loads its library, which nobody has judged:
 * *ret_unseen, or NULL.
 */
static CUresult find_owners(CUfunction function, struct code_pin *ret_owners, CUlibrary *ret_unseen)
{
	struct table_entry entry;
	CUlibrary library;
	CUmodule module = NULL;
	CUresult r, other;

	*ret_unseen = NULL;
	*ret_owners = (struct code_pin){.owners = {0, 0, contexts_life_current()}};
	if (!cuda.cuFuncIsLoaded || !cuda.cuKernelGetLibrary || !cuda.cuFuncGetModule)
		return CUDA_SUCCESS;
	if (!is_function(function, &r)) {
		other = find_library(function, &library);
		ret_owners->owners[0] = (uintptr_t)library;
		ret_owners->is_library = library != NULL;
		/* What else the driver answers is of something else than the handle. */
		return r == CUDA_ERROR_INVALID_HANDLE && other == r ? r : CUDA_SUCCESS;
	}
	other = cuda.cuFuncGetModule(&module, function);
	if (!is_function(function, &r))
		(void)!find_library(function, ret_unseen);
	if (other != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	ret_owners->owners[0] = (uintptr_t)module;
	if (module && table_get(&modules, (uintptr_t)module, &entry) == 0) {
		ret_owners->owners[1] = entry.a;
		ret_owners->owners[2] = entry.b;
	}
	return CUDA_SUCCESS;
}

void code_pins_end(struct code_pin *pin)
{
	bool is_any = false;

	for (unsigned i = 0; i < CODE_PIN_OWNERS; i++)
		if (pin->owners[i]) {
			code_uses_end(pin->owners[i]);
			is_any = true;
		}
	*pin = (struct code_pin){.owners = {0}};
	if (is_any)
		libraries_unload_put_off();
}

static CUresult pin_all(const struct code_pin *wanted, struct code_pin *ret_pin)
{
	CUresult r = CUDA_SUCCESS;

	*ret_pin = (struct code_pin){.is_library = wanted->is_library};
	for (unsigned i = 0; i < CODE_PIN_OWNERS && r == CUDA_SUCCESS; i++) {
		if (!wanted->owners[i])
			continue;
		r = code_uses_begin(wanted->owners[i]);
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

/* Unless it was used before, in another context. What it has taken is found first. */
static void unload_unseen(CUlibrary library)
{
	struct device *device;

	if (state_enter() != STATE_OPEN || state_current_device(&device) != CUDA_SUCCESS)
		return;
	log_info("a library was loaded for a function that another thread unloaded");
	parts_compare(device, PARTS_REFUSAL);
	(void)libraries_unload(library, device);
}

/* While the handle is nobody's that the library itself is unloading. */
static CUresult ask(CUfunction function, struct code_pin *ret_owners)
{
	CUlibrary unseen;
	CUresult r;

	if (!libraries_enter(function))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = find_owners(function, ret_owners, &unseen);
	libraries_leave();
	if (UNLIKELY(unseen))
		unload_unseen(unseen);
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
	struct code_pin wanted = {.owners = {(uintptr_t)library}, .is_library = true};

	*ret_pin = (struct code_pin){.owners = {0}};
	if (!library || state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	/* One that is to be unloaded as it did not fit is not held off by this. */
	if (!libraries_enter(library))
		return CUDA_ERROR_OUT_OF_MEMORY;
	libraries_leave();
	wanted.owners[2] = contexts_life_current();
	return pin_patiently(&wanted, ret_pin);
}

/* A library's kernel is one of every context. What the driver does not tell may be of any code, unless it never tells (before CUDA 12.4). */
static bool is_of(CUfunction function, CUcontext context, uint64_t owner)
{
	struct code_pin found;
	CUresult r = ask(function, &found);

	if (r != CUDA_SUCCESS)
		return r != CUDA_ERROR_INVALID_HANDLE;
	if ((!found.owners[0] && cuda.cuFuncIsLoaded && cuda.cuFuncGetModule) ||
		(found.is_library && !context && contexts_is_life(owner)))
		return true;
	if (found.is_library)
		found.owners[2] = contexts_life_of(context);
	for (unsigned i = 0; i < CODE_PIN_OWNERS; i++)
		if (found.owners[i] == owner)
			return true;
	return false;
}

/*
 * Launches of functions that were launched before: none finds its mark any more until marks_room_end(), and those that have found it come back. False where one
 * takes too long.
 */
static bool forget_begin(launching_wanted_fn *is_wanted, uint64_t owner, struct patience *patience)
{
	marks_room_begin();
	if (launching_wait(is_wanted, owner, patience))
		return true;
	marks_room_end();
	return false;
}

static bool is_any(CUfunction function, CUcontext context, uint64_t unused)
{
	return true;
}

bool code_pins_room_begin(void)
{
	struct patience patience = patience_begin(CODE_PINS_WAIT_NS);

	if (forget_begin(is_any, 0, &patience))
		return true;
	log_error("a launch takes too long, so room of its context is not given back");
	return false;
}

/* Of the thread's unload that is under way: what is entered later is of what the driver gave the handle to. */
static __thread uint64_t unload_number;

/* A call that uses it may itself be waiting to change a graph, so it is waited for first; and what an executable graph is made of may wait for uses of a library. */
CUresult code_pins_unload_begin(uint64_t owner, uint64_t longest_ns)
{
	struct patience patience = patience_begin(longest_ns);
	CUresult r = CUDA_ERROR_NOT_READY;

	if (!owner)
		return CUDA_SUCCESS;
	for (unsigned i = 0; r == CUDA_ERROR_NOT_READY; i++) {
		if (i && (code_uses_are_own() || launching_is_own() ||
				 patience_is_over(&patience))) {
			log_error("a call that uses code takes too long, so that is not unloaded");
			return r;
		}
		if (i)
			lock_rest(i - 1);
		if (code_uses_are_any(owner))
			continue;
		if (!makings_change_begin())
			return r;
		r = code_uses_unload_begin(owner);
		if (r == CUDA_SUCCESS && forget_begin(is_of, owner, &patience)) {
			unload_number = table_number();
			return r;
		}
		if (r == CUDA_SUCCESS) {
			code_uses_unload_end(owner);
			r = CUDA_ERROR_NOT_READY;
		}
		makings_change_end();
	}
	return r;
}

static bool is_of_owner(const struct table_entry *entry, uint64_t owner)
{
	return (entry->key == owner || entry->a == owner) && entry->d < unload_number;
}

static bool is_of_life(const struct table_entry *entry, uint64_t life)
{
	return entry->b == life;
}

static void forget_modules(table_wanted_fn *is_wanted, uint64_t what)
{
	struct table_cursor cursor = {0};
	struct table_entry entry;

	while (table_take_next(&modules, is_wanted, what, &cursor, &entry) == 0)
		continue;
}

void code_pins_unload_end(uint64_t owner, bool is_gone)
{
	if (!owner)
		return;
	/* It is a module, or a library. */
	if (is_gone)
		forget_modules(is_of_owner, owner);
	marks_room_end();
	code_uses_unload_end(owner);
	makings_change_end();
	libraries_unload_put_off();
}

struct code_pins_own code_pins_own_unload_begin(uint64_t owner)
{
	struct code_pins_own own = {.owner = owner, .is_closed = code_uses_close(owner)};
	struct patience patience = patience_begin(CODE_PINS_WAIT_NS);

	for (unsigned i = 0; code_uses_are_any(owner) && !code_uses_are_own(); i++) {
		if (patience_is_over(&patience)) {
			log_error("code that did not fit is unloaded while it is used");
			break;
		}
		lock_rest(i);
	}
	own.is_change = makings_change_begin();
	return own;
}

void code_pins_own_unload_end(const struct code_pins_own *own)
{
	if (own->is_closed)
		code_uses_unload_end(own->owner);
	if (own->is_change)
		makings_change_end();
}

/* A green context is a face of its device's primary one, and may end before that. */
static bool put_module(CUmodule module, CUlibrary library)
{
	CUcontext context = current_context();
	CUcontext primary = context ? contexts_primary_of(context) : NULL;
	const struct table_entry entry = {.key = (uintptr_t)module,
		.a = (uintptr_t)library,
		.b = context ? contexts_life_of(context) : 0,
		.c = (uintptr_t)(primary ? primary : context),
		.d = table_number()};

	if (table_put(&modules, entry) == 0)
		return true;
	log_error("no memory for our own tables, so code is refused");
	return false;
}

bool code_pins_module_of(CUmodule module, CUlibrary library)
{
	return !module || !library || put_module(module, library);
}

bool code_pins_library_loaded(CUlibrary library)
{
	CUmodule module;

	return !cuda.cuLibraryGetModule ||
	       cuda.cuLibraryGetModule(&module, library) != CUDA_SUCCESS ||
	       code_pins_module_of(module, library);
}

bool code_pins_module(CUmodule module)
{
	return !module || state_enter() == STATE_ASIDE || put_module(module, NULL);
}

void code_pins_life_ended(struct device *device, uint64_t life)
{
	(void)device;
	if (life)
		forget_modules(is_of_life, life);
}

CUcontext code_pins_context(const struct code_pin *pin)
{
	struct table_entry entry;
	CUcontext context;

	if (pin->is_library || !pin->owners[0] ||
		table_get(&modules, pin->owners[0], &entry) != 0 || !entry.b)
		return NULL;
	context = (CUcontext)(uintptr_t)entry.c;
	return contexts_life_of(context) == entry.b ? context : NULL;
}

void code_pins_reset_after_fork(void)
{
	table_forget(&modules);
}
