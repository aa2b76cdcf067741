/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of loaded objects.
 *
 * We export dlsym and dlvsym, so every ordinary way to ask for them gives us ourselves, a versioned
 * reference included. And a reference to dlopen would bind us to glibc 2.34, or to libdl.so.2, which
 * the program may not have loaded. So we look where the dynamic linker looks: in the symbol table of
 * the loaded libc.so.6 (glibc 2.34 and later) or libdl.so.2 (before), through its GNU hash table.
 */
#include "tenant/driver/symbols.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct libc_symbols symbols_found;
_Atomic bool symbols_are_found;
bool symbols_have_no_driver;

/* glibc relocates the dynamic section's pointers in place; where one has not been, it is an offset. */
static const void *pointer(ElfW(Addr) base, ElfW(Addr) value)
{
	return (const void *)(value < base ? base + value : value);
}

static bool read_tables(
	ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct symbols_object *ret_object)
{
	struct symbols_object o = {.base = base, .dynamic = dynamic};
	const ElfW(Dyn) *soname = NULL;

	for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SONAME)
			soname = d;
		if (d->d_tag == DT_SYMTAB)
			o.symbols = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_STRTAB)
			o.strings = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_GNU_HASH)
			o.hash = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_HASH)
			o.old_hash = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_VERSYM)
			o.versions = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_RELA)
			o.relocations[0] = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_RELASZ)
			o.relocation_bytes[0] = d->d_un.d_val;
		if (d->d_tag == DT_RELACOUNT)
			o.unnamed_relocations = d->d_un.d_val;
		if (d->d_tag == DT_JMPREL)
			o.relocations[1] = pointer(o.base, d->d_un.d_ptr);
		if (d->d_tag == DT_PLTRELSZ)
			o.relocation_bytes[1] = d->d_un.d_val;
	}
	if (soname && o.strings)
		o.soname = o.strings + soname->d_un.d_val;
	*ret_object = o;
	return o.symbols && o.strings;
}

bool symbols_read_object(const struct dl_phdr_info *info, struct symbols_object *ret_object)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return read_tables(info->dlpi_addr, dynamic, ret_object);
}

bool symbols_is_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The hash function of DT_GNU_HASH: Bernstein's, h * 33 + c from 5381. */
static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* Where the chains of a DT_GNU_HASH begin, and the first symbol that is in one. */
static const uint32_t *read_hash(const uint32_t *hash, const uint32_t **ret_buckets)
{
	uint32_t bucket_count = hash[0], bloom_words = hash[2];

	*ret_buckets = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
	return *ret_buckets + bucket_count;
}

/* In an object with the old hash table alone. */
static const ElfW(Sym) * look_through(const struct symbols_object *o, const char *name)
{
	for (uint32_t i = 0, count = symbols_count(o); i < count; i++)
		if (o->symbols[i].st_shndx != SHN_UNDEF &&
			symbols_is_same(o->strings + o->symbols[i].st_name, name))
			return &o->symbols[i];
	return NULL;
}

/* elf/dl-lookup.c: "hidden", for programs that were linked with it */
#define VERSION_IS_OLD 0x8000u

/* The version that a program is linked with today, or else an old one. */
const ElfW(Sym) * symbols_look_up(const struct symbols_object *o, const char *name)
{
	uint32_t wanted = gnu_hash(name), bucket_count, first, i;
	const uint32_t *buckets, *chain;
	const ElfW(Sym) *old = NULL;

	if (!o->hash)
		return look_through(o, name);
	if (o->hash[0] == 0)
		return NULL;
	bucket_count = o->hash[0];
	first = o->hash[1];
	chain = read_hash(o->hash, &buckets);
	i = buckets[wanted % bucket_count];
	if (i < first)
		return NULL;
	for (;; i++) {
		uint32_t h = chain[i - first];

		if ((h | 1) == (wanted | 1) && o->symbols[i].st_shndx != SHN_UNDEF &&
			symbols_is_same(o->strings + o->symbols[i].st_name, name)) {
			if (!o->versions || !(o->versions[i] & VERSION_IS_OLD))
				return &o->symbols[i];
			old = old ? old : &o->symbols[i];
		}
		if (h & 1)
			return old;
	}
}

void *symbols_find_in(const struct symbols_object *o, const char *name)
{
	const ElfW(Sym) *s = symbols_look_up(o, name);

	return s ? (void *)(o->base + s->st_value) : NULL;
}

uint32_t symbols_count(const struct symbols_object *o)
{
	const uint32_t *buckets, *chain;
	uint32_t last = 0;

	if (o->old_hash)
		return o->old_hash[1];
	if (!o->hash)
		return 0;
	chain = read_hash(o->hash, &buckets);
	for (uint32_t i = 0; i < o->hash[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < o->hash[1])
		return 0;
	while (!(chain[last - o->hash[1]] & 1))
		last++;
	return last + 1;
}

/* The linker's names for where this library begins and ends in memory, and for its dynamic section. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

bool symbols_read_own(struct symbols_object *ret_object)
{
	return read_tables((ElfW(Addr))__ehdr_start, _DYNAMIC, ret_object);
}

void *symbols_find_own(const char *name)
{
	struct symbols_object own;

	return symbols_read_own(&own) ? symbols_find_in(&own, name) : NULL;
}

bool symbols_is_own(const void *address)
{
	return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

/* Weak, so that the dynamic linker need not be named as a library of ours. */
extern struct r_debug _r_debug __attribute__((weak));
static const struct r_debug *list = &_r_debug;
static _Atomic bool has_looked; /* at that list */

static bool is_libc(const char *path)
{
	static const char *const names[] = {"libc.so", "libdl.so", "libc-2.", "libdl-2."};
	const char *file = path;

	for (const char *c = path; *c; c++)
		if (*c == '/')
			file = c + 1;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		for (unsigned k = 0; file[k] == names[i][k]; k++)
			if (!names[i][k + 1])
				return true;
	return false;
}

static void find_in_libc(const char *path, const struct symbols_object *o, struct libc_symbols *s)
{
	if (!is_libc(path))
		return;
	if (!s->dlsym)
		s->dlsym = (dlsym_fn *)symbols_find_in(o, "dlsym");
	if (!s->dlvsym)
		s->dlvsym = (dlvsym_fn *)symbols_find_in(o, "dlvsym");
	if (!s->dlopen)
		s->dlopen = (dlopen_fn *)symbols_find_in(o, "dlopen");
	if (!s->dlclose)
		s->dlclose = (dlclose_fn *)symbols_find_in(o, "dlclose");
	if (!s->each)
		s->each = (symbols_each_fn *)symbols_find_in(o, "dl_iterate_phdr");
}

static bool is_complete(const struct libc_symbols *s)
{
	return s->dlsym && s->dlvsym && s->dlopen && s->dlclose && s->each;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct symbols_object o;

	(void)size;
	if (info->dlpi_name && symbols_read_object(info, &o))
		find_in_libc(info->dlpi_name, &o, data);
	return 0;
}

/*
 * The list that the dynamic linker keeps for debuggers is read once, without its lock: the first who asks does it while the process
 * begins, and the C library is there for good. Where it is not complete, before glibc 2.34, the rest may come later.
 */
bool symbols_find_libc(void)
{
	struct libc_symbols s = {.dlsym = NULL};
	struct symbols_object o;

	/* relaxed: two threads that both look find the same */
	if (list && !atomic_exchange_explicit(&has_looked, true, memory_order_relaxed))
		for (const struct link_map *m = list->r_map; m && !is_complete(&s); m = m->l_next)
			if (m->l_name && read_tables(m->l_addr, m->l_ld, &o))
				find_in_libc(m->l_name, &o, &s);
	if (!is_complete(&s))
		dl_iterate_phdr(visit, &s);
	if (!is_complete(&s))
		return false;
	/* Two threads may both come here; they write the same words. */
	symbols_found = s;
	/* pairs with the acquire in symbols_libc() */
	atomic_store_explicit(&symbols_are_found, true, memory_order_release);
	return true;
}

void symbols_begin(const struct r_debug *own_list)
{
	if (!own_list)
		return;
	list = own_list;
	/* relaxed, both: before other threads are there */
	atomic_store_explicit(&symbols_are_found, false, memory_order_relaxed);
	atomic_store_explicit(&has_looked, false, memory_order_relaxed);
}

bool symbols_read_libc(struct symbols_object *ret_object)
{
	const struct link_map *program = list ? list->r_map : NULL;

	for (const struct link_map *m = program ? program->l_next : NULL; m; m = m->l_next)
		if (read_tables(m->l_addr, m->l_ld, ret_object) && ret_object->soname &&
			symbols_is_same(ret_object->soname, "libc.so.6"))
			return true;
	return false;
}

struct search {
	const void *caller;
	const char *name;
	bool is_behind_caller;
	void *found;
};

bool symbols_holds(const struct dl_phdr_info *info, const void *address)
{
	ElfW(Addr) at = (ElfW(Addr))address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at >= p->p_vaddr && at < p->p_vaddr + p->p_memsz)
			return true;
	}
	return false;
}

static int visit_next(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	struct symbols_object o;

	(void)size;
	if (!s->is_behind_caller) {
		s->is_behind_caller = symbols_holds(info, s->caller);
		return 0;
	}
	if (symbols_read_object(info, &o))
		s->found = symbols_find_in(&o, s->name);
	return s->found != NULL;
}

void symbols_each(symbols_visit_fn *visit_object, void *data)
{
	const struct libc_symbols *libc = symbols_libc();

	(libc ? libc->each : dl_iterate_phdr)(visit_object, data);
}

void *symbols_find_next(const void *caller, const char *name)
{
	struct search s = {.caller = caller, .name = name};

	symbols_each(visit_next, &s);
	return s.found;
}
