/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loaded object's own scope has, asked by us in its place.
 *
 * Which libraries brought the caller is not to be had from the C library. So we take all that need it, directly or by others, in the
 * order in which they were loaded: the one that dlopen() was given comes before what came with it. One that was itself brought by
 * another has less than that one, and nothing else.
 */
#include "tenant/driver/scope.h"

#include <dlfcn.h>
#include <stdint.h>

#include "tenant/driver/attach.h"
#include "tenant/driver/symbols.h"

#define MOST_OBJECTS  2048 /* what comes behind them brings nobody */
#define MOST_BRINGING 16
#define PATH_BYTES    2048 /* of all names of these */
#define MOST_LISTED   256

static unsigned first_count; /* the objects that the program began with; 0: not known */

static int count(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	++*(unsigned *)data;
	return 0;
}

void scope_remember(void)
{
	symbols_each(count, &first_count);
}

void *scope_ask(void *handle, const struct scope_name *name)
{
	const struct libc_symbols *libc = symbols_libc();

	if (!libc)
		return NULL;
	return name->version ? libc->dlvsym(handle, name->symbol, name->version)
			     : libc->dlsym(handle, name->symbol);
}

/* Of a library that is loaded. What is found stays as long as it does for the program. */
static void *ask_library(const char *path, const struct scope_name *name)
{
	const struct libc_symbols *libc = symbols_libc();
	void *library = libc ? libc->dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL, *found;

	if (!library)
		return NULL;
	found = scope_ask(library, name);
	libc->dlclose(library);
	return symbols_is_own(found) ? NULL : found;
}

static const char *file_of(const char *path)
{
	const char *file = path;

	for (const char *c = path; *c; c++)
		if (*c == '/')
			file = c + 1;
	return file;
}

/* Whether it is what a library means that needs one of this name. */
static bool is_named(
	const struct dl_phdr_info *info, const struct symbols_object *o, const char *needed)
{
	return symbols_is_same(needed, o->soname ? o->soname : file_of(info->dlpi_name)) ||
	       symbols_is_same(needed, info->dlpi_name);
}

/* A loaded object that is looked for: by what it holds, by the name by which it is needed, or where neither is given by its place in the list. */
struct object {
	const void *address;
	const char *needed;
	unsigned place;

	unsigned index; /* its place */
	struct symbols_object tables;
	const char *path;
	bool is_found;
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object *o = data;
	bool is_by_place = !o->address && !o->needed;

	(void)size;
	o->is_found = (!o->address || symbols_holds(info, o->address)) &&
		      (!is_by_place || o->index == o->place) &&
		      symbols_read_object(info, &o->tables) &&
		      (!o->needed || is_named(info, &o->tables, o->needed));
	o->path = info->dlpi_name;
	o->index += !o->is_found;
	return o->is_found || (is_by_place && o->index > o->place);
}

static bool find(struct object *o)
{
	symbols_each(visit_object, o);
	return o->is_found;
}

struct bringing {
	const void *caller;
	/* Those that need the caller, and the caller, by their places in the list. */
	uint64_t marks[MOST_OBJECTS / 64];
	unsigned index;
	bool has_marked;

	struct symbols_object tables; /* of the one that is looked at */
	bool is_needed;		      /* it needs one of these */

	char paths[PATH_BYTES]; /* what was found, each with its end */
	unsigned used, count;
};

static bool is_marked(const struct bringing *b, unsigned index)
{
	return b->marks[index / 64] >> (index % 64) & 1;
}

/* Whether the one that is looked at needs this one, which is marked. */
static int visit_marked(struct dl_phdr_info *info, size_t size, void *data)
{
	struct bringing *b = data;
	struct symbols_object o;

	(void)size;
	if (b->index >= MOST_OBJECTS)
		return 1;
	if (!is_marked(b, b->index++) || !symbols_read_object(info, &o))
		return 0;
	for (const ElfW(Dyn) *d = b->tables.dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && is_named(info, &o, b->tables.strings + d->d_un.d_val))
			b->is_needed = true;
	return b->is_needed;
}

static int visit_bringing(struct dl_phdr_info *info, size_t size, void *data)
{
	struct bringing *b = data;
	unsigned index = b->index;

	(void)size;
	if (index >= MOST_OBJECTS)
		return 1;
	if (!is_marked(b, index) && symbols_read_object(info, &b->tables)) {
		b->is_needed = symbols_holds(info, b->caller);
		b->index = 0;
		if (!b->is_needed)
			symbols_each(visit_marked, b);
		if (b->is_needed) {
			b->marks[index / 64] |= UINT64_C(1) << (index % 64);
			b->has_marked = true;
		}
	}
	b->index = index + 1;
	return 0;
}

/* Their names are copied: outside the walk another thread may take one of them away. */
static int visit_found(struct dl_phdr_info *info, size_t size, void *data)
{
	struct bringing *b = data;
	unsigned index = b->index++, used = b->used;

	(void)size;
	if (index >= MOST_OBJECTS || b->count == MOST_BRINGING)
		return 1;
	/* What the program began with is in everybody's scope, and the program has no name. */
	if (index < first_count || !is_marked(b, index) || !info->dlpi_name[0])
		return 0;
	for (const char *c = info->dlpi_name; used < PATH_BYTES; c++)
		if (!(b->paths[used++] = *c)) {
			b->used = used;
			b->count++;
			return 0;
		}
	return 1;
}

static void mark_all(struct bringing *b)
{
	do {
		b->has_marked = false;
		b->index = 0;
		symbols_each(visit_bringing, b);
	} while (b->has_marked);
	b->index = 0;
}

/* In the first visit, so that nothing is loaded or taken away until it has ended. */
static int visit_once(struct dl_phdr_info *info, size_t size, void *data)
{
	struct bringing *b = data;

	(void)info;
	(void)size;
	mark_all(b);
	symbols_each(visit_found, b);
	return 1;
}

void *scope_find_local(const void *caller, const struct scope_name *name)
{
	struct bringing b = {.caller = caller};
	struct object o = {.address = caller};
	void *found = NULL;

	if (!first_count || !find(&o) || o.index < first_count)
		return NULL;
	symbols_each(visit_once, &b);
	for (const char *path = b.paths; b.count && !found; b.count--) {
		found = ask_library(path, name);
		while (*path++)
			;
	}
	return found;
}

/* The order in which the C library looks: what the first needs, then what these need. */
struct order {
	struct bringing b;
	const char *symbol;
	unsigned caller_index;
	uint16_t list[MOST_LISTED];
	unsigned count;
	uint64_t listed[MOST_OBJECTS / 64];
};

static void list(struct order *o, unsigned index)
{
	if (index >= MOST_OBJECTS || o->count == MOST_LISTED ||
		(o->listed[index / 64] >> (index % 64) & 1))
		return;
	o->listed[index / 64] |= UINT64_C(1) << (index % 64);
	o->list[o->count++] = (uint16_t)index;
}

static void list_needed(struct order *o, const struct symbols_object *tables)
{
	for (const ElfW(Dyn) *d = tables->dynamic; d->d_tag != DT_NULL; d++) {
		struct object needed = {.needed = tables->strings + d->d_un.d_val};

		if (d->d_tag == DT_NEEDED && find(&needed))
			list(o, needed.index);
	}
}

static bool copy_path(struct bringing *b, const char *path)
{
	for (b->used = 0; b->used < PATH_BYTES; path++)
		if (!(b->paths[b->used++] = *path))
			return true;
	return false;
}

/* Leaves the path of the first one behind the caller that has the name. */
static int visit_order(struct dl_phdr_info *info, size_t size, void *data)
{
	struct order *o = data;
	unsigned first = first_count;
	bool is_behind = false;

	(void)info;
	(void)size;
	mark_all(&o->b);
	while (first < o->caller_index && (first >= MOST_OBJECTS || !is_marked(&o->b, first)))
		first++;
	list(o, first);
	for (unsigned i = 0; i < o->count; i++) {
		struct object at = {.place = o->list[i]};

		if (!find(&at))
			continue;
		if (is_behind && symbols_look_up(&at.tables, o->symbol) &&
			copy_path(&o->b, at.path)) {
			o->b.count = 1;
			break;
		}
		is_behind |= o->list[i] == o->caller_index;
		list_needed(o, &at.tables);
	}
	return 1;
}

void *scope_find_next(const void *caller, const struct scope_name *name)
{
	struct order order = {.b = {.caller = caller}, .symbol = name->symbol};
	struct object o = {.address = caller};

	if (!first_count || !find(&o) || o.index < first_count)
		return symbols_find_next(caller, name->symbol);
	order.caller_index = o.index;
	symbols_each(visit_order, &order);
	return order.b.count ? ask_library(order.b.paths, name) : NULL;
}

typedef bool is_name_fn(const char *name);

static bool is_called(
	const struct dl_phdr_info *info, const struct symbols_object *o, is_name_fn *is_name)
{
	return is_name(file_of(info->dlpi_name)) || (o->soname && is_name(o->soname));
}

struct function {
	const char *symbol;
	bool is_behind_us;
	void *found;
};

static int visit_function(struct dl_phdr_info *info, size_t size, void *data)
{
	struct function *f = data;
	struct symbols_object o;
	const ElfW(Sym) * s;

	(void)size;
	if (!f->is_behind_us) {
		f->is_behind_us = symbols_holds(info, &first_count);
		return 0;
	}
	if (!symbols_read_object(info, &o) || is_called(info, &o, attach_is_cuda) ||
		is_called(info, &o, attach_is_nvml))
		return 0;
	s = symbols_look_up(&o, f->symbol);
	if (s && ELF64_ST_TYPE(s->st_info) == STT_FUNC)
		f->found = (void *)(o.base + s->st_value);
	return f->found != NULL;
}

void *scope_find_function(const char *symbol)
{
	struct function f = {.symbol = symbol};

	symbols_each(visit_function, &f);
	return f.found;
}

static int visit_cuda(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object *o = data;

	(void)size;
	if (!symbols_holds(info, o->address))
		return 0;
	o->is_found = symbols_read_object(info, &o->tables) &&
		      is_called(info, &o->tables, attach_is_cuda);
	return 1;
}

bool scope_is_cuda(const void *address)
{
	struct object o = {.address = address};

	symbols_each(visit_cuda, &o);
	return o.is_found;
}
