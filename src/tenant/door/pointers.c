/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of a library that are called as a function of the driver, and references that may lead nowhere. */
#include "tenant/door/pointers.h"

#include <stdint.h>

#include "base/cancel.h"
#include "tenant/door/bindings.h"
#include "tenant/driver/symbols.h"

struct search {
	const void *address;
	const char *symbol;
	const ElfW(Sym) * found;
};

static int visit_definition(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	struct symbols_object o;

	(void)size;
	if (!symbols_holds(info, s->address))
		return 0;
	if (symbols_read_object(info, &o))
		s->found = symbols_look_up(&o, s->symbol);
	return 1;
}

/* The variable of that name in the object which holds the address; NULL where there is none, or it is a function. */
static const ElfW(Sym) * find_variable(const void *address, const char *symbol)
{
	struct search s = {.address = address, .symbol = symbol};

	if (address)
		symbols_each(visit_definition, &s);
	return s.found && ELF64_ST_TYPE(s.found->st_info) == STT_OBJECT ? s.found : NULL;
}

/* What comes behind us. At the start only: the order is that of the lookups. */
static void *find_behind(const char *symbol)
{
	return symbols_find_next((const void *)pointers_give_back, symbol);
}

/* A variable of the program itself, which is to begin with what is in the library's. */
static void copy(const struct dl_phdr_info *info, const struct symbols_object *o,
	const ElfW(Rela) * r, const ElfW(Sym) * s)
{
	const char *symbol = o->strings + s->st_name;
	void *from = symbols_find_own(symbol) ? find_behind(symbol) : NULL;
	const ElfW(Sym) *variable = find_variable(from, symbol);

	if (variable && variable->st_size == s->st_size)
		bindings_write(info, (void *)(o->base + r->r_offset), from, s->st_size);
}

/* It may lie between variables of an object that a sanitizer guards. */
__attribute__((no_sanitize("address"))) static void *read_slot(void *const volatile *slot)
{
	return *slot;
}

/* What is bound to us, and would be to a variable: its own, or at the start one of another. */
static void bind_anew(const struct dl_phdr_info *info, const struct symbols_object *o,
	const ElfW(Rela) * r, const ElfW(Sym) * s, bool is_start)
{
	const char *symbol = o->strings + s->st_name;
	void **slot = (void **)(o->base + r->r_offset), *bound = read_slot(slot), *variable;

	if (!symbols_is_own(bound) || bound != symbols_find_own(symbol))
		return;
	if (s->st_shndx != SHN_UNDEF)
		variable = (void *)(o->base + s->st_value);
	else
		variable = is_start ? find_behind(symbol) : NULL;
	if (find_variable(variable, symbol))
		bindings_write(info, slot, &variable, sizeof(variable));
}

/*
 * A weak reference is nothing's where nobody but us has the name: whoever tests it takes us for the whole driver. A slot for calls that has
 * not been used yet leads into its own object.
 */
static void unbind(const struct dl_phdr_info *info, const struct symbols_object *o,
	const ElfW(Rela) * r, const ElfW(Sym) * s)
{
	const char *symbol = o->strings + s->st_name;
	void **slot = (void **)(o->base + r->r_offset), *bound, *nothing = NULL;

	if (s->st_shndx != SHN_UNDEF || ELF64_ST_BIND(s->st_info) != STB_WEAK)
		return;
	bound = read_slot(slot);
	if (symbols_is_own(bound) && bound == symbols_find_own(symbol) && !find_behind(symbol))
		bindings_write(info, slot, &nothing, sizeof(nothing));
}

static void give_back(const struct dl_phdr_info *info, const struct symbols_object *o,
	const ElfW(Rela) * r, bool is_start)
{
	const ElfW(Sym) *s = &o->symbols[ELF64_R_SYM(r->r_info)];
	uint64_t type = ELF64_R_TYPE(r->r_info);

	if (type == BINDING_COPY && is_start)
		copy(info, o, r, s);
	if (type == BINDING_SLOT || type == BINDING_ADDRESS)
		bind_anew(info, o, r, s, is_start);
	if ((type == BINDING_SLOT || type == BINDING_ADDRESS || type == BINDING_CALL) && is_start)
		unbind(info, o, r, s);
}

/* In the object that holds the address; NULL: in all, at the start. The dynamic linker's lock keeps other threads out. */
static int visit_bound(struct dl_phdr_info *info, size_t size, void *data)
{
	const void *const *only = data;
	struct symbols_object o;

	(void)size;
	if ((*only && !symbols_holds(info, *only)) || !symbols_read_object(info, &o))
		return 0;
	for (int k = 0; k < 2; k++)
		for (size_t i = k == 0 ? o.unnamed_relocations : 0;
			o.relocations[k] && i < o.relocation_bytes[k] / sizeof(ElfW(Rela)); i++)
			give_back(info, &o, &o.relocations[k][i], !*only);
	return 0;
}

static void give_back_in(const void *only)
{
	CANCEL_PUT_OFF;

	symbols_each(visit_bound, &only);
}

void pointers_give_back_at_start(void)
{
	give_back_in(NULL);
}

void pointers_give_back(const void *caller, const char *symbol)
{
	if (find_variable(caller, symbol))
		give_back_in(caller);
}
