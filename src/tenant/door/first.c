/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes us the first that has our names, where a share of the machine binds and the environment put another library before us.
 *
 * Before main(), and once: in the tables of symbols of each library between the program and us our names get our addresses,
 * for all that is looked up or bound from then on, also in libraries that are loaded later; and what was bound to such a
 * library already is bound to us. So it is as if we had been put first. A library that has none of our names is not touched,
 * nor is the program itself, whatever it defines.
 *
 * The driver is attached before that, and the C library's own functions are known: neither is looked up by name again.
 */
#define LOG_TOPIC LOG_DOOR
#include "tenant/door/first.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/stderr.h"
#include "tenant/door/bindings.h"
#include "tenant/door/imports.h"
#include "tenant/door/pointers.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/scope.h"
#include "tenant/driver/symbols.h"
#include "tenant/slice/bound.h"
#include "tenant/slice/state.h"

bool first_has_moved;

struct walk {
	struct symbols_object own;
	bool is_behind_program; /* the program comes first */
	bool is_needed;
	bool has_failed;
};

/* Ours of that name; NULL where it is none of ours. */
static void *find_ours(const struct symbols_object *own, const char *name)
{
	if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0 &&
		strcmp(name, "dlsym") != 0 && strcmp(name, "dlvsym") != 0)
		return NULL;
	return symbols_find_in(own, name);
}

/* Ours, where the symbol is a definition of one of our names. */
static void *find_ours_for(
	const struct walk *w, const struct symbols_object *o, const ElfW(Sym) * s)
{
	return s->st_shndx != SHN_UNDEF && s->st_value ? find_ours(&w->own, o->strings + s->st_name)
						       : NULL;
}

static bool has_ours(const struct walk *w, const struct symbols_object *o)
{
	for (uint32_t i = 0, count = symbols_count(o); i < count; i++)
		if (find_ours_for(w, o, &o->symbols[i]))
			return true;
	return false;
}

/* Our names in a library before us become ours. */
static void move_names(
	const struct dl_phdr_info *info, const struct symbols_object *o, struct walk *w)
{
	ElfW(Sym) *symbols = (ElfW(Sym) *)(uintptr_t)o->symbols;
	uint32_t count = symbols_count(o);

	if (bindings_protect(info, symbols, count * sizeof(*symbols), true) < 0) {
		w->has_failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		ElfW(Sym) *s = &symbols[i];
		void *ours = find_ours_for(w, o, s);

		if (!ours)
			continue;
		/* No function any more that is called to tell which one it is. */
		s->st_info = (unsigned char)ELF64_ST_INFO(ELF64_ST_BIND(s->st_info), STT_FUNC);
		s->st_value = (ElfW(Addr))ours - o->base;
	}
	bindings_protect(info, symbols, count * sizeof(*symbols), false);
}

/* At first only to see whether there is such a library. */
static int visit_before_us(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *w = data;
	struct symbols_object o;

	(void)size;
	if (symbols_holds(info, &first_has_moved))
		return 1;
	if (w->is_behind_program && symbols_read_object(info, &o) && has_ours(w, &o)) {
		w->is_needed = true;
		if (first_has_moved)
			move_names(info, &o, w);
	}
	w->is_behind_program = true;
	return 0;
}

struct place {
	const void *address;
	bool is_behind_program, is_before_us;
};

static int visit_place(struct dl_phdr_info *info, size_t size, void *data)
{
	struct place *p = data;

	(void)size;
	if (symbols_holds(info, &first_has_moved))
		return 1;
	p->is_before_us = p->is_behind_program && symbols_holds(info, p->address);
	p->is_behind_program = true;
	return p->is_before_us;
}

/* Whether the address lies in a library before us. */
static bool is_before_us(const void *address)
{
	struct place p = {.address = address};

	dl_iterate_phdr(visit_place, &p);
	return p.is_before_us;
}

static void bind_anew(const struct dl_phdr_info *info, const struct symbols_object *o,
	const ElfW(Rela) * r, struct walk *w)
{
	uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);
	void *ours, **slot = (void **)(o->base + r->r_offset), *bound;

	if (!symbol)
		return;
	ours = find_ours(&w->own, o->strings + o->symbols[symbol].st_name);
	if (!ours)
		return;
	memcpy(&bound, slot, sizeof(bound));
	if (!is_before_us(bound))
		return;
	if (bindings_write(info, slot, &ours, sizeof(ours)) < 0)
		w->has_failed = true;
}

static int visit_bound(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *w = data;
	struct symbols_object o;

	(void)size;
	if (!symbols_read_object(info, &o) || symbols_holds(info, &first_has_moved))
		return 0;
	for (int k = 0; k < 2; k++)
		for (size_t i = 0;
			o.relocations[k] && i < o.relocation_bytes[k] / sizeof(ElfW(Rela)); i++)
			bind_anew(info, &o, &o.relocations[k][i], w);
	return 0;
}

static void move_all(struct walk *w)
{
	const struct libc_symbols *libc = symbols_libc();

	attach_cuda();
	attach_nvml();
	/* A lookup that succeeds takes away what one that did not has left for dlerror(). */
	if (libc)
		libc->dlsym(RTLD_DEFAULT, "dlsym");
	else
		symbols_have_no_driver = true;
	first_has_moved = true;
	w->is_behind_program = false;
	dl_iterate_phdr(visit_before_us, w);
	dl_iterate_phdr(visit_bound, w);
}

/* A constructor of a library that the program is linked with comes before this, and may have had the share read. */
static void judge_imports(enum imports imports)
{
	if (imports == IMPORTS_RIGHT || (imports == IMPORTS_WERE_ANOTHERS && !state_has_begun()))
		return;
	log_error("functions of the C library that this library needs are another one's, so all "
		  "device memory is refused",
		STR("why", imports == IMPORTS_ANOTHERS ? "they cannot be bound anew"
						       : "they were used before main()"));
	state_close_for_ever();
}

__attribute__((constructor)) static void put_first(int count, char **arguments, char **environment)
{
	enum imports imports = imports_bind(count, arguments, environment);
	struct walk w = {.is_behind_program = false};
	int saved_errno = errno;

	stderr_remember();
	scope_remember();
	pointers_give_back_at_start();
	if (bound_remember() && symbols_read_own(&w.own)) {
		dl_iterate_phdr(visit_before_us, &w);
		if (w.is_needed)
			move_all(&w);
	}
	if (w.has_failed) {
		log_error("a library that has the driver's names, or dlsym, comes before this one "
			  "and cannot be "
			  "changed, so all device memory is refused",
			STR("right", "an LD_PRELOAD without it"));
		state_close_for_ever();
	}
	judge_imports(imports);
	errno = saved_errno;
}
