/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libvgpu.so binds what it imports to the C library's own. Here that is the virtual clock's: by the C library's table of symbols, for
 * where it does so later than this is begun, and by its own bindings, for where it was begun before.
 */
#include <link.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "tenant/door/bindings.h"
#include "tenant/driver/symbols.h"

static const struct {
	const char *name;
	void *function;
} ours[] = {{"clock_gettime", (void *)clock_gettime}, {"times", (void *)times},
	{"time", (void *)time}, {"nanosleep", (void *)nanosleep},
	{"clock_nanosleep", (void *)clock_nanosleep}, {"poll", (void *)poll},
	{"syscall", (void *)syscall}};

static void *find_ours(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(ours); i++)
		if (strcmp(name, ours[i].name) == 0)
			return ours[i].function;
	return NULL;
}

static void take_names(const struct dl_phdr_info *info, const struct symbols_object *o)
{
	ElfW(Sym) *symbols = (ElfW(Sym) *)(uintptr_t)o->symbols;
	uint32_t count = symbols_count(o);

	if (bindings_protect(info, symbols, count * sizeof(*symbols), true) < 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		ElfW(Sym) *s = &symbols[i];
		void *function = find_ours(o->strings + s->st_name);

		if (!function || s->st_shndx == SHN_UNDEF)
			continue;
		s->st_info = ELF64_ST_INFO(ELF64_ST_BIND(s->st_info), STT_FUNC);
		s->st_value = (ElfW(Addr))function - o->base;
	}
	bindings_protect(info, symbols, count * sizeof(*symbols), false);
}

static void bind_anew(const struct dl_phdr_info *info, const struct symbols_object *o)
{
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < o->relocation_bytes[k] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *r = &o->relocations[k][i];
			const ElfW(Sym) *s = &o->symbols[ELF64_R_SYM(r->r_info)];
			void *function = find_ours(o->strings + s->st_name);

			if (function && s->st_shndx == SHN_UNDEF)
				bindings_write(info, (void *)(o->base + r->r_offset), &function,
					sizeof(function));
		}
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *file = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	struct symbols_object o;

	if (!file || !symbols_read_object(info, &o))
		return 0;
	if (strcmp(file, "/libc.so.6") == 0)
		take_names(info, &o);
	if (strncmp(file, "/libvgpu", 8) == 0)
		bind_anew(info, &o);
	return 0;
}

__attribute__((constructor)) static void bind(void)
{
	dl_iterate_phdr(visit, NULL);
}
