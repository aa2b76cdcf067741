/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported dlsym() and dlvsym().
 *
 * glibc reads its caller's return address to know what RTLD_NEXT and RTLD_DEFAULT mean. So a name
 * that cannot be a driver's leaves by a tail call: the C library then sees the program, not us. This
 * file is compiled with -O2 in every build, because only then is it one; a test keeps watch.
 *
 * A driver's name is looked up for the program and then swapped, so there the C library would see us:
 * RTLD_NEXT is answered from the list of loaded objects instead. With RTLD_DEFAULT, or a handle of
 * the whole program, the real dlsym() finds our own exported hook first, although the program may
 * have loaded no driver, or one that lacks the function: then what counts is what comes after us.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "tenant/door/swap.h"
#include "tenant/hooks/hook.h"
#include "tenant/driver/symbols.h"

__attribute__((visibility("default"))) dlsym_fn dlsym;
__attribute__((visibility("default"))) dlvsym_fn dlvsym;

static inline bool is_cuda_name(const char *name)
{
	return name[0] == 'c' && name[1] == 'u';
}

static inline bool is_nvml_name(const char *name)
{
	return name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l';
}

/*
 * Before the program's own lookup, because this one makes lookups that may fail, and dlerror() must
 * speak of the program's. Without the library there is nothing to swap.
 */
static void attach(const char *name)
{
	if (is_cuda_name(name) ? hook_attach_cuda() : hook_attach_nvml())
		return;
}

void *dlsym(void *handle, const char *name)
{
	const struct libc_symbols *libc = symbols_libc();
	void *found;

	if (UNLIKELY(!libc))
		return NULL;
	if (LIKELY(!is_cuda_name(name) && !is_nvml_name(name)))
		return libc->dlsym(handle, name);
	attach(name);
	if (handle == RTLD_NEXT)
		found = symbols_find_next(__builtin_return_address(0), name);
	else
		found = libc->dlsym(handle, name);
	if (found && swap_is_ours(found))
		found = libc->dlsym(RTLD_NEXT, name);
	return swap_address(found);
}

void *dlvsym(void *handle, const char *name, const char *version)
{
	const struct libc_symbols *libc = symbols_libc();
	void *found;

	if (UNLIKELY(!libc))
		return NULL;
	if (LIKELY(!is_cuda_name(name) && !is_nvml_name(name)))
		return libc->dlvsym(handle, name, version);
	attach(name);
	found = libc->dlvsym(handle, name, version);
	if (found && swap_is_ours(found))
		found = libc->dlvsym(RTLD_NEXT, name, version);
	return swap_address(found);
}
