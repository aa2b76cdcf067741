/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym() is the tenant library's where that is loaded. So the table of symbols is read here, as the
 * dynamic linker itself reads it.
 */
#include "bench/direct.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wanted {
	const char *library, *function;
	void *found;
};

struct tables {
	const ElfW(Sym) * symbols;
	const char *names;
	const uint32_t *hash; /* GNU's */
};

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name != '\0'; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Hash of GNU: counts of buckets, the first symbol, words of the filter; filter, buckets, chains. */
static const ElfW(Sym) * find_symbol(const struct tables *tables, const char *name)
{
	uint32_t buckets = tables->hash[0], first = tables->hash[1];
	const uint32_t *bucket = tables->hash + 4 + tables->hash[2] * sizeof(ElfW(Addr)) / 4;
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = hash_name(name), i = buckets > 0 ? bucket[hash % buckets] : 0;

	for (; i >= first && i > 0; i++) {
		const ElfW(Sym) *symbol = &tables->symbols[i];

		if ((chain[i - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
			strcmp(tables->names + symbol->st_name, name) == 0)
			return symbol;
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *data)
{
	struct wanted *wanted = data;
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *file = slash != NULL ? slash + 1 : info->dlpi_name;
	struct tables tables = {NULL, NULL, NULL};
	const ElfW(Dyn) *dyn = NULL;
	const ElfW(Sym) * symbol;

	if (strncmp(file, wanted->library, strlen(wanted->library)) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	}
	for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++) {
		/* the linker has made these addresses whole, on the machines that have a driver */
		const void *at = (const void *)dyn->d_un.d_ptr;

		if (dyn->d_tag == DT_SYMTAB)
			tables.symbols = at;
		else if (dyn->d_tag == DT_STRTAB)
			tables.names = at;
		else if (dyn->d_tag == DT_GNU_HASH)
			tables.hash = at;
	}
	if (tables.symbols == NULL || tables.names == NULL || tables.hash == NULL)
		return 0;
	symbol = find_symbol(&tables, wanted->function);
	if (symbol == NULL)
		return 0;
	wanted->found = (void *)(info->dlpi_addr + symbol->st_value);
	return 1;
}

void *direct_find(const char *library, const char *function)
{
	struct wanted wanted = {library, function, NULL};

	dl_iterate_phdr(look_into, &wanted);
	return wanted.found;
}
