/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loaded object's own scope has, asked by us in its place.
 *
 * The C library looks first at what the program began with and what was loaded RTLD_GLOBAL, then at what came with the caller: the
 * library that dlopen() was given, and what that one needs. The second part it gives the caller alone. So we ask each
 * library by which the caller may have come, by its handle.
 */
#pragma once

#include <stdbool.h>

/* A name, and its version; NULL: any. */
struct scope_name {
	const char *symbol, *version;
};

/* Remembers what the program began with. Once, before main() begins. */
void scope_remember(void);

/* dlsym() or dlvsym() of the C library, as we ask. Context, of all below: any thread; takes the C library's lock for loading. */
void *scope_ask(void *handle, const struct scope_name *name);

/* What RTLD_DEFAULT finds for the caller in what came with it alone; NULL where it does not. */
void *scope_find_local(const void *caller, const struct scope_name *name);

/* What RTLD_NEXT finds for the caller. NULL where it finds none. */
void *scope_find_next(const void *caller, const struct scope_name *name);

/* The function of that name that a library behind us has which is no driver's; NULL where none has. */
void *scope_find_function(const char *symbol);

/* Whether the address lies in a library that is called as CUDA's driver is. Context: any thread; no allocation. */
bool scope_is_cuda(const void *address);
