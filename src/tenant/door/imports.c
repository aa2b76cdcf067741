/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this library imports from the C library.
 *
 * The C library is found through the dynamic linker's own list, and that by the kernel's word of where it lies: nothing of it has a
 * name that a program could take.
 */
#include "tenant/door/imports.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "tenant/door/bindings.h"
#include "tenant/door/kernel_words.h"
#include "tenant/driver/symbols.h"

#ifndef __has_feature
#define __has_feature(name) 0 /* clang's; gcc has a macro for each */
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* The linker's name for where this library begins in memory. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* What another one may have: its memory is as good, and run times of languages and sanitizers have their own. */
static bool may_be_anothers(const char *name)
{
	static const char *const names[] = {
#ifdef VGPU_FAULTS
		/* With faults, for tests: a thread that rests lets another one go on (tests/hunt/baton.c). */
		"nanosleep",
#endif
		"malloc", "calloc", "realloc", "free", "__cxa_atexit", "__cxa_finalize",
		"__gmon_start__"};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (symbols_is_same(name, names[i]))
			return true;
	return false;
}

/* As dl_iterate_phdr() tells of it. */
static struct dl_phdr_info info_at(uintptr_t base)
{
	const ElfW(Ehdr) *header = (const void *)base;

	return (struct dl_phdr_info){.dlpi_addr = base,
		.dlpi_phdr = (const void *)(base + header->e_phoff),
		.dlpi_phnum = header->e_phnum};
}

static const struct r_debug *find_list(uintptr_t loader)
{
	struct symbols_object o;
	struct dl_phdr_info info;

	if (!loader)
		return NULL;
	info = info_at(loader);
	return symbols_read_object(&info, &o) ? symbols_find_in(&o, "_r_debug") : NULL;
}

/* What a function that tells which one it is gets on AArch64 (sys/ifunc.h); on x86-64 it gets nothing. */
#define HWCAP_IS_FIRST (UINT64_C(1) << 62)
struct ifunc_argument {
	unsigned long size, hwcap, hwcap2;
};
typedef void *ifunc_fn(uint64_t hwcap, const struct ifunc_argument *argument);

/* The C library's; NULL where it has none, or none that can be told. */
static void *find_function(
	const struct symbols_object *libc, const char *name, const struct kernel_words *words)
{
	const ElfW(Sym) *s = symbols_look_up(libc, name);
	const struct ifunc_argument argument = {sizeof(argument), words->hwcap, words->hwcap2};
	void *found = s ? (void *)(libc->base + s->st_value) : NULL;

	if (s && ELF64_ST_TYPE(s->st_info) == STT_FUNC)
		return found;
	if (!s || ELF64_ST_TYPE(s->st_info) != STT_GNU_IFUNC || !words->loader)
		return NULL;
	return ((ifunc_fn *)found)(words->hwcap | HWCAP_IS_FIRST, &argument);
}

typedef int mprotect_fn(void *address, size_t bytes, int protection);
typedef int getpagesize_fn(void);

/* What the dynamic linker leaves constant: all that it has bound. By the C library's own functions, as ours are not bound yet. */
static bool protect(
	const struct symbols_object *libc, const struct kernel_words *words, int protection)
{
	struct dl_phdr_info own = info_at((uintptr_t)__ehdr_start);
	mprotect_fn *change = (mprotect_fn *)find_function(libc, "mprotect", words);
	getpagesize_fn *page_bytes = (getpagesize_fn *)find_function(libc, "getpagesize", words);
	bool is_done = change && page_bytes;

	for (int i = 0; is_done && i < own.dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &own.dlpi_phdr[i];
		uintptr_t mask = ~((uintptr_t)page_bytes() - 1), start, end;

		if (p->p_type != PT_GNU_RELRO)
			continue;
		start = (own.dlpi_addr + p->p_vaddr) & mask;
		end = (own.dlpi_addr + p->p_vaddr + p->p_memsz) & mask;
		is_done = change((void *)start, end - start, protection) == 0;
	}
	return is_done;
}

/* One binding: *ret_slot is where it is to be *ret_right, NULL where it is right, or may be another one's. */
static void look(const struct symbols_object *o, const ElfW(Rela) * r,
	const struct symbols_object *libc, const struct kernel_words *words, void ***ret_slot,
	void **ret_right)
{
	uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);
	uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
	const char *name = o->strings + o->symbols[symbol].st_name;
	void **slot = (void **)(o->base + r->r_offset);

	*ret_slot = NULL;
	if (!symbol || (type != BINDING_SLOT && type != BINDING_CALL && type != BINDING_ADDRESS) ||
		r->r_addend || o->symbols[symbol].st_shndx != SHN_UNDEF || may_be_anothers(name))
		return;
	*ret_right = find_function(libc, name, words);
	if (*ret_right && *slot != *ret_right)
		*ret_slot = slot;
}

static enum imports bind_all(const struct symbols_object *libc, const struct kernel_words *words)
{
	bool is_done = true, is_writable = false;
	struct symbols_object o;

	if (!symbols_read_own(&o))
		return IMPORTS_ANOTHERS;
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; is_done && o.relocations[k] &&
				   i < o.relocation_bytes[k] / sizeof(ElfW(Rela));
			i++) {
			void **slot, *right;

			look(&o, &o.relocations[k][i], libc, words, &slot, &right);
			if (!slot)
				continue;
			if (!is_writable)
				is_done = is_writable =
					protect(libc, words, PROT_READ | PROT_WRITE);
			if (is_writable)
				*slot = right;
		}
	if (!is_done || (is_writable && !protect(libc, words, PROT_READ)))
		return IMPORTS_ANOTHERS;
	return is_writable ? IMPORTS_WERE_ANOTHERS : IMPORTS_RIGHT;
}

enum imports imports_bind(int count, char **arguments, char **environment)
{
	struct kernel_words words;
	struct symbols_object libc;

	/* The run time of a sanitizer is to see what a library does that was built for it. */
	if (IS_SANITIZED)
		return IMPORTS_RIGHT;
	words = kernel_words_read(count, arguments, environment);
	symbols_begin(find_list(words.loader));
	return symbols_read_libc(&libc) ? bind_all(&libc, &words) : IMPORTS_ANOTHERS;
}
