/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of loaded objects, found without the dynamic linker's help: the C library's own dlsym,
 * dlvsym and dlopen, although this library exports two of these names, and what RTLD_NEXT means for
 * a caller that is not us.
 */
#pragma once

#include <stdbool.h>

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlvsym_fn(void *handle, const char *name, const char *version);
typedef void *dlopen_fn(const char *path, int flags);

struct libc_symbols {
	dlsym_fn *dlsym;
	dlvsym_fn *dlvsym;
	dlopen_fn *dlopen;
};

/* Whether all three were found. Context: any thread; no allocation; may run before main(). */
bool symbols_find_libc(struct libc_symbols *ret_symbols);

/*
 * The function of that name in the first object that was loaded after the one which holds the
 * caller's address, and defines it; NULL where none does. Context: as above.
 */
void *symbols_find_next(const void *caller, const char *name);
