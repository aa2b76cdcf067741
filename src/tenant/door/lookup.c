/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups in the place of the program.
 *
 * The name is looked up for the program and then swapped, so the C library sees us as the caller. With a handle that is all the same.
 * For RTLD_DEFAULT and RTLD_NEXT the scope of the real caller is asked. In the scope of the whole program our own exported hook comes first,
 * although the program may have loaded no driver, or one that lacks the function: then what counts is what comes after us.
 */
#include "tenant/door/lookup.h"

#include <dlfcn.h>
#include <stddef.h>

#include "tenant/door/first.h"
#include "tenant/door/pointers.h"
#include "tenant/door/swap.h"
#include "tenant/driver/scope.h"
#include "tenant/driver/symbols.h"
#include "tenant/hooks/hook.h"

/*
 * Before the program's own lookup, because this one makes lookups that may fail, and dlerror() must
 * speak of the program's. Without the library there is nothing to swap.
 */
static void attach(const char *name)
{
	if (name[0] == 'n' ? hook_attach_nvml() : hook_attach_cuda())
		return;
}

/*
 * Another thread may have loaded the driver, or changed the name, since attach(). A driver that could not be attached, as
 * where there was no memory, has no function for the program.
 */
static void *swap(const struct libc_symbols *libc, void *found)
{
	if (found == (void *)libc->dlsym)
		return symbols_find_own("dlsym");
	if (found == (void *)libc->dlvsym)
		return symbols_find_own("dlvsym");
	if (found && !hook_attach_cuda()) {
		if (scope_is_cuda(found))
			return NULL;
		/* A lookup that succeeds takes away what one that did not has left for dlerror(). */
		found = libc->dlsym(RTLD_DEFAULT, "dlsym") ? found : NULL;
	}
	return swap_address(found);
}

/*
 * What comes behind our own function. Where the names of a library before us lead to us (first.c), that library is not behind
 * us, and what it has is ours: who looks it up by its handle is to have it.
 */
static void *find_behind(void *own, const struct scope_name *name)
{
	void *behind = scope_ask(RTLD_NEXT, name);

	if (behind || !first_has_moved)
		return behind;
	return own == symbols_find_own("dlsym") || own == symbols_find_own("dlvsym") ||
			       swap_has(own)
		       ? own
		       : NULL;
}

static void *find(const void *caller, void *handle, const struct scope_name *name)
{
	void *found = handle == RTLD_NEXT ? scope_find_next(caller, name) : scope_ask(handle, name);

	if (found && symbols_is_own(found))
		found = find_behind(found, name);
	if (!found && handle == RTLD_DEFAULT)
		found = scope_find_local(caller, name);
	return found;
}

void *lookup_for(const void *caller, void *handle, const char *symbol, const char *version)
{
	const struct scope_name name = {.symbol = symbol, .version = version};
	const struct libc_symbols *libc = symbols_libc();
	void *found;

	attach(symbol);
	pointers_give_back(caller, symbol);
	found = find(caller, handle, &name);
	/* For what dlerror() says: the last lookup is to be one that fails. */
	if (!found && (handle == RTLD_DEFAULT || handle == RTLD_NEXT))
		scope_ask(RTLD_NEXT, &name);
	return swap(libc, found);
}
