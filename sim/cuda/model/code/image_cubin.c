/* SPDX-License-Identifier: Apache-2.0 */
/* Reading cubins: ELF files, in which symbols and sections tell what we need. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"

/*
 * Seen in cubins of CUDA 13: the code of kernel K is section .text.K, its variables are symbols in
 * .nv.global and .nv.global.init, what it calls of the driver's own device code are undefined
 * symbols, and .nv.info holds numbers for each function.
 */

/* In .nv.info: a record of this form and attribute has a symbol's index and its frame's bytes. */
#define INFO_FORM_SIZED 4
#define INFO_FRAME_SIZE 0x11

/* A bit of st_other (STO_CUDA_MANAGED). */
#define SYMBOL_IS_MANAGED 4

struct cubin {
	const unsigned char *data;
	const Elf64_Shdr *section;
	unsigned int section_count;
	const char *section_names;
	const Elf64_Sym *symbol;
	unsigned int symbol_count;
	const char *symbol_names;
};

static const char *section_name(const struct cubin *cubin, unsigned int index)
{
	return cubin->section_names + cubin->section[index].sh_name;
}

static int open_cubin(const void *data, struct cubin *ret_cubin)
{
	const Elf64_Ehdr *header = data;
	struct cubin cubin = {.data = data};

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr) ||
		header->e_shnum == 0 || header->e_shstrndx >= header->e_shnum)
		return -EINVAL;
	cubin.section = (const Elf64_Shdr *)(const void *)(cubin.data + header->e_shoff);
	cubin.section_count = header->e_shnum;
	cubin.section_names =
		(const char *)cubin.data + cubin.section[header->e_shstrndx].sh_offset;
	for (unsigned int i = 0; i < cubin.section_count; i++) {
		const Elf64_Shdr *section = &cubin.section[i];

		if (section->sh_type != SHT_SYMTAB || section->sh_link >= cubin.section_count)
			continue;
		cubin.symbol = (const Elf64_Sym *)(const void *)(cubin.data + section->sh_offset);
		cubin.symbol_count = (unsigned int)(section->sh_size / sizeof(Elf64_Sym));
		cubin.symbol_names =
			(const char *)cubin.data + cubin.section[section->sh_link].sh_offset;
	}
	*ret_cubin = cubin;
	return 0;
}

static int read_sections(struct image *image, const struct cubin *cubin)
{
	for (unsigned int i = 0; i < cubin->section_count; i++) {
		const char *name = section_name(cubin, i);

		if (strncmp(name, ".text.", 6) != 0)
			continue;
		image->code_bytes += cubin->section[i].sh_size;
		if (!image_add_kernel(image, name + 6, strlen(name + 6)))
			return -ENOMEM;
	}
	return 0;
}

static int read_symbols(struct image *image, const struct cubin *cubin)
{
	for (unsigned int i = 0; i < cubin->symbol_count; i++) {
		const Elf64_Sym *symbol = &cubin->symbol[i];
		const char *name = cubin->symbol_names + symbol->st_name;
		struct image_global *global;

		if (symbol->st_shndx == SHN_UNDEF)
			image_note_needed(image, name, strlen(name));
		if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0 ||
			symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= cubin->section_count ||
			strncmp(section_name(cubin, symbol->st_shndx), ".nv.global", 10) != 0)
			continue;
		global = image_add_global(image, name, strlen(name));
		if (!global)
			return -ENOMEM;
		global->size = symbol->st_size;
		global->is_managed = symbol->st_other & SYMBOL_IS_MANAGED;
	}
	return 0;
}

static void set_frame(
	struct image *image, const struct cubin *cubin, uint32_t symbol, uint32_t frame_bytes)
{
	if (symbol >= cubin->symbol_count)
		return;
	for (unsigned int i = 0; i < image->kernel_count; i++) {
		if (strcmp(image->kernel[i].name,
			    cubin->symbol_names + cubin->symbol[symbol].st_name) == 0)
			image->kernel[i].frame_bytes = frame_bytes;
	}
}

/* Records of 4 bytes: form, attribute, and a value or how many bytes follow. */
static void read_info(struct image *image, const struct cubin *cubin, const Elf64_Shdr *section)
{
	const unsigned char *at = cubin->data + section->sh_offset;
	const unsigned char *end = at + section->sh_size;

	while (end - at >= 4) {
		uint16_t bytes;
		uint32_t pair[2];

		memcpy(&bytes, at + 2, sizeof(bytes));
		if (at[0] != INFO_FORM_SIZED) {
			at += 4;
			continue;
		}
		if (bytes > end - at - 4)
			return;
		if (at[1] == INFO_FRAME_SIZE && bytes >= sizeof(pair)) {
			memcpy(pair, at + 4, sizeof(pair));
			set_frame(image, cubin, pair[0], pair[1]);
		}
		at += 4 + bytes;
	}
}

int image_read_cubin(struct image *image, const void *data)
{
	struct cubin cubin;
	int r = open_cubin(data, &cubin);

	if (r == 0)
		r = read_sections(image, &cubin);
	if (r == 0)
		r = read_symbols(image, &cubin);
	for (unsigned int i = 0; r == 0 && i < cubin.section_count; i++) {
		if (strcmp(section_name(&cubin, i), ".nv.info") == 0)
			read_info(image, &cubin, &cubin.section[i]);
	}
	return r;
}
