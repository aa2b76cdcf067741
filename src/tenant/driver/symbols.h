/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of loaded objects, found without the dynamic linker's help: the C library's own dlsym,
 * dlvsym and dlopen, although this library exports two of these names, and what RTLD_NEXT means for
 * a caller that is not us.
 *
 * The run time of a sanitizer asks our dlsym() for the functions that it is to stand in for, and cannot be called itself until
 * it has them. So nothing here calls what it stands in for, string functions among them.
 */
#pragma once

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlvsym_fn(void *handle, const char *name, const char *version);
typedef void *dlopen_fn(const char *path, int flags);
typedef int dlclose_fn(void *handle);
typedef int symbols_visit_fn(struct dl_phdr_info *info, size_t size, void *data);
typedef int symbols_each_fn(symbols_visit_fn *visit, void *data);

struct libc_symbols {
	dlsym_fn *dlsym;
	dlvsym_fn *dlvsym;
	dlopen_fn *dlopen;
	dlclose_fn *dlclose;
	symbols_each_fn *each; /* dl_iterate_phdr() */
};

/* Filled once; use symbols_libc(). */
extern struct libc_symbols symbols_found;
extern _Atomic bool symbols_are_found;
bool symbols_find_libc(void);

/*
 * The C library's own functions; NULL where they cannot be found. Context: any thread; no
 * allocation; may run before main().
 */
static inline const struct libc_symbols *symbols_libc(void)
{
	/* pairs with the release in symbols_find_libc() */
	if (LIKELY(atomic_load_explicit(&symbols_are_found, memory_order_acquire)))
		return &symbols_found;
	return symbols_find_libc() ? &symbols_found : NULL;
}

/* Set before main() where the names of a driver lead to us, and its own functions were not found before: it is never attached. */
extern bool symbols_have_no_driver;

/*
 * The function of that name in the first object that was loaded after the one which holds the
 * caller's address, and defines it; NULL where none does. Context: as above.
 */
void *symbols_find_next(const void *caller, const char *name);

/* dl_iterate_phdr(). Context: any thread. */
void symbols_each(symbols_visit_fn *visit, void *data);

/* The tables of a loaded object. */
struct symbols_object {
	ElfW(Addr) base;
	const ElfW(Dyn) * dynamic;
	const char *soname; /* NULL: it has none */
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash, *old_hash; /* DT_GNU_HASH, DT_HASH; NULL: it has none */
	const uint16_t *versions;	 /* of symbols; NULL: they have none */
	const ElfW(Rela) * relocations[2];
	size_t relocation_bytes[2];
	size_t unnamed_relocations; /* at the beginning of the first, of no symbol: most of all in large libraries */
};

/* False where it has no table of symbols. Context, of all below: within a visit of dl_iterate_phdr(). */
bool symbols_read_object(const struct dl_phdr_info *info, struct symbols_object *ret_object);

/* The function that it defines, of any version; NULL where it does not. */
void *symbols_find_in(const struct symbols_object *object, const char *name);

/* This library's. Context: anywhere. */
bool symbols_read_own(struct symbols_object *ret_object);

/* What this library exports under that name; NULL where it does not. Context: anywhere. */
void *symbols_find_own(const char *name);

/* Whether the address lies in this library. Context: anywhere. */
bool symbols_is_own(const void *address);

/* The same, as the table has it. */
const ElfW(Sym) * symbols_look_up(const struct symbols_object *object, const char *name);

/* strcmp() == 0. */
bool symbols_is_same(const char *a, const char *b);

/* How many places its table of symbols has, as its hash table tells. */
uint32_t symbols_count(const struct symbols_object *object);

/* The C library's. Context: a constructor. */
bool symbols_read_libc(struct symbols_object *ret_object);

/*
 * From now on loaded objects are found by this list of the dynamic linker's, or as before (NULL): the name of that list may be another
 * object's. Context: a constructor, once.
 */
void symbols_begin(const struct r_debug *own_list);

/* Whether the address lies in the object. */
bool symbols_holds(const struct dl_phdr_info *info, const void *address);
