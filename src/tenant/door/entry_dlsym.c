/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported dlsym() and dlvsym().
 *
 * glibc reads its caller's return address to know what RTLD_NEXT and RTLD_DEFAULT mean. So a name that we do not have leaves by a
 * tail call: the C library then sees the program, not us. This file is compiled with -O2 in every build, because only then is it
 * one; a test keeps watch. Names that we have are looked up in the program's place (lookup.h), and with a handle, which means the
 * same for every caller, all that begin as a driver's do.
 *
 * The C library's own dlsym() and dlvsym(), looked up with its handle, would lead past us. Who asks for them is given ours.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "base/bits.h"
#include "tenant/door/lookup.h"
#include "tenant/driver/symbols.h"

__attribute__((visibility("default"))) dlsym_fn dlsym;
__attribute__((visibility("default"))) dlvsym_fn dlvsym;

#define COPY_BYTES  1024 /* longer names are looked up in the program's place */
#define COPY_PLACES 2

/*
 * Another thread of the program can change the name at any time. What is looked up by the tail call is the thread's copy of a
 * name that was found to be none of ours: that lasts when our frame is gone. A handler of a signal may look up another one in
 * between, and may be left by a jump before it has copied it. So a place is empty while it is written, by its first byte, and who comes
 * meanwhile takes the next. What stands in a place is then nothing, or a whole name that was looked at.
 */
static __thread struct {
	unsigned busy; /* the places that are being written */
	char names[COPY_PLACES][COPY_BYTES];
} copies;

static const char *keep(const char *name, size_t bytes)
{
	volatile unsigned *busy = &copies.busy;
	unsigned place = *busy;
	volatile char *to;

	if (UNLIKELY(place >= COPY_PLACES))
		return NULL;
	*busy = place + 1;
	to = copies.names[place];
	to[0] = '\0';
	for (size_t i = 1; i < bytes; i++)
		to[i] = name[i];
	to[0] = name[0];
	*busy = place;
	return copies.names[place];
}

/* The thread's copy of a name for the tail call; NULL for one of ours, one that is long, and with a handle one that may be a driver's. */
static __attribute__((noinline)) const char *copy_other_name(const void *handle, const char *name)
{
	char copy[COPY_BYTES];
	size_t length = 0;

	/* Zeros behind its end, where it is short. */
	for (size_t i = 0; i < LOOKUP_START_BYTES; i++)
		copy[i] = '\0';
	while ((copy[length] = ((const volatile char *)name)[length]))
		if (UNLIKELY(++length == COPY_BYTES))
			return NULL;
	if (UNLIKELY(lookup_is_drivers_start(copy)) &&
		((handle != RTLD_DEFAULT && handle != RTLD_NEXT) || symbols_find_own(copy)))
		return NULL;
	return keep(copy, length + 1);
}

void *dlsym(void *handle, const char *name)
{
	const struct libc_symbols *libc = symbols_libc();
	const char *other;

	if (UNLIKELY(!libc))
		return NULL;
	other = copy_other_name(handle, name);
	if (LIKELY(other))
		return libc->dlsym(handle, other);
	return lookup_for(__builtin_return_address(0), handle, name, NULL);
}

void *dlvsym(void *handle, const char *name, const char *version)
{
	const struct libc_symbols *libc = symbols_libc();
	const char *other;

	if (UNLIKELY(!libc))
		return NULL;
	other = copy_other_name(handle, name);
	if (LIKELY(other))
		return libc->dlvsym(handle, other, version);
	return lookup_for(__builtin_return_address(0), handle, name, version);
}
