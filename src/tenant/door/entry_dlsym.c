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
 *
 * The C library's own dlsym() and dlvsym(), looked up with its handle, would lead past us. Who asks for them is given ours.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "tenant/door/first.h"
#include "tenant/door/swap.h"
#include "tenant/hooks/hook.h"
#include "tenant/driver/symbols.h"

__attribute__((visibility("default"))) dlsym_fn dlsym;
__attribute__((visibility("default"))) dlvsym_fn dlvsym;

/*
 * Another thread of the program can change the name at any time. What is looked up by the tail call is the thread's copy of a
 * name that was found to be no driver's: that lasts when our frame is gone. A handler of a signal may look up another one in
 * between. So the letters by which a driver's name is known come there in one piece, and none but other names' ever do.
 */
#define COPY_BYTES  1024 /* longer ones are treated as a driver's */
#define START_BYTES 4
static __thread union {
	volatile uint32_t start;
	char bytes[COPY_BYTES];
} copy;

union start {
	uint32_t word;
	char bytes[START_BYTES];
};

/* The name's first letters, and zeros behind its end. */
static inline union start start_of(const char *name)
{
	union start s = {.word = 0};

	for (int i = 0; i < START_BYTES && (s.bytes[i] = ((const volatile char *)name)[i]); i++)
		;
	return s;
}

static inline bool is_nvml_name(union start s)
{
	return s.bytes[0] == 'n' && s.bytes[1] == 'v' && s.bytes[2] == 'm' && s.bytes[3] == 'l';
}

/* dlsym, dlvsym */
static inline bool is_lookup_name(union start s)
{
	return s.bytes[0] == 'd' && s.bytes[1] == 'l' && (s.bytes[2] == 's' || s.bytes[2] == 'v') &&
	       (s.bytes[3] == 'y' || s.bytes[3] == 's');
}

/* The thread's copy of the name; NULL where it may be a driver's or a lookup's, or is long. */
static inline const char *copy_other_name(const char *name)
{
	union start s = start_of(name);

	if ((s.bytes[0] == 'c' && s.bytes[1] == 'u') || is_nvml_name(s) || is_lookup_name(s))
		return NULL;
	copy.start = s.word;
	if (!s.bytes[START_BYTES - 1])
		return copy.bytes;
	for (int i = START_BYTES; i < COPY_BYTES; i++)
		if (!(copy.bytes[i] = name[i]))
			return copy.bytes;
	return NULL;
}

/*
 * Before the program's own lookup, because this one makes lookups that may fail, and dlerror() must
 * speak of the program's. Without the library there is nothing to swap.
 */
static void attach(const char *name)
{
	if (is_nvml_name(start_of(name)) ? hook_attach_nvml() : hook_attach_cuda())
		return;
}

/* The function as the program is to have it. Another thread may have loaded the driver, or changed the name, since attach(). */
static void *swap(const struct libc_symbols *libc, void *found)
{
	if (found == (void *)libc->dlsym)
		return (void *)dlsym;
	if (found == (void *)libc->dlvsym)
		return (void *)dlvsym;
	/* A lookup that succeeds takes away what one that did not has left for dlerror(). */
	if (found && !hook_attach_cuda())
		found = libc->dlsym(RTLD_DEFAULT, "dlsym") ? found : NULL;
	return swap_address(found);
}

/*
 * What comes behind our own function. Where the names of a library before us lead to us (first.c), that library is not behind
 * us, and what it has is ours: who looks it up by its handle is to have it.
 */
static void *choose_behind(void *own, void *behind)
{
	if (behind || !first_has_moved)
		return behind;
	return own == (void *)dlsym || own == (void *)dlvsym || swap_has(own) ? own : NULL;
}

void *dlsym(void *handle, const char *name)
{
	const struct libc_symbols *libc = symbols_libc();
	const char *other;
	void *found;

	if (UNLIKELY(!libc))
		return NULL;
	other = copy_other_name(name);
	if (LIKELY(other))
		return libc->dlsym(handle, other);
	attach(name);
	if (handle == RTLD_NEXT)
		found = symbols_find_next(__builtin_return_address(0), name);
	else
		found = libc->dlsym(handle, name);
	if (found && swap_is_ours(found))
		found = choose_behind(found, libc->dlsym(RTLD_NEXT, name));
	return swap(libc, found);
}

void *dlvsym(void *handle, const char *name, const char *version)
{
	const struct libc_symbols *libc = symbols_libc();
	const char *other;
	void *found;

	if (UNLIKELY(!libc))
		return NULL;
	other = copy_other_name(name);
	if (LIKELY(other))
		return libc->dlvsym(handle, other, version);
	attach(name);
	found = libc->dlvsym(handle, name, version);
	if (found && swap_is_ours(found))
		found = choose_behind(found, libc->dlvsym(RTLD_NEXT, name, version));
	return swap(libc, found);
}
