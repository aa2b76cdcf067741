/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel image tells about the device memory that it will take. */
#include "tenant/memory/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/file.h"

/* A larger file is not read twice only to tell its size. */
#define FILE_BYTES_MAX (UINT64_C(1) << 30)

/* An ELF image and how many bytes of it may be read: all that it describes, where its size is unknown. */
struct elf {
	const uint8_t *bytes;
	uint64_t size;
};

/* A part of the image, NULL where it lies outside. */
static const void *part(const struct elf *elf, uint64_t at, uint64_t size)
{
	return at <= elf->size && size <= elf->size - at ? elf->bytes + at : NULL;
}

static const Elf64_Shdr *section(const struct elf *elf, unsigned index)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf->bytes;

	if (index >= head->e_shnum || head->e_shentsize != sizeof(Elf64_Shdr))
		return NULL;
	return part(elf, head->e_shoff + (uint64_t)index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
}

static void note_symbol(const char *name, uint64_t room, struct image *image)
{
	static const char *const heap[] = {"malloc", "cudaLaunchDevice", "cudaLaunchDeviceV2"};

	if (memchr(name, 0, room) == NULL)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(heap); i++)
		image->has_heap |= strcmp(name, heap[i]) == 0;
	image->has_printf |= strcmp(name, "vprintf") == 0;
}

/* Functions that the image calls and does not have are the device runtime's. */
static void read_symbols(const struct elf *elf, const Elf64_Shdr *table, struct image *image)
{
	const Elf64_Shdr *names = section(elf, table->sh_link);
	const Elf64_Sym *symbol = part(elf, table->sh_offset, table->sh_size);
	const char *text = names ? part(elf, names->sh_offset, names->sh_size) : NULL;

	if (!symbol || !text)
		return;
	for (uint64_t i = 0; i < table->sh_size / sizeof(*symbol); i++)
		if (symbol[i].st_shndx == SHN_UNDEF && symbol[i].st_name < names->sh_size)
			note_symbol(text + symbol[i].st_name, names->sh_size - symbol[i].st_name,
				image);
}

static struct image read_elf(const struct elf *elf)
{
	const Elf64_Ehdr *head = part(elf, 0, sizeof(*head));
	struct image image = {.is_known = false};
	const Elf64_Shdr *s;

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
		head->e_ident[EI_CLASS] != ELFCLASS64)
		return image;
	for (unsigned i = 0; (s = section(elf, i)) != NULL; i++) {
		if (s->sh_flags & SHF_ALLOC &&
			__builtin_add_overflow(image.device_bytes, s->sh_size, &image.device_bytes))
			image.device_bytes = UINT64_MAX;
		if (s->sh_type == SHT_SYMTAB)
			read_symbols(elf, s, &image);
	}
	image.is_known = true;
	return image;
}

/* The element's size in bits of a type like ".b8" or ".u64" at the beginning of the text; 0: none. */
static unsigned long type_bits(const char *text)
{
	if (text[0] != '.' || !strchr("busf", text[1]) || text[2] < '0' || text[2] > '9')
		return 0;
	return strtoul(text + 2, NULL, 10);
}

/* A variable's bytes, from behind its ".global" up to what ends its declaration. */
static uint64_t declared_bytes(const char *text)
{
	uint64_t bytes = 1;

	for (; *text && !strchr(";=,{", *text); text++) {
		if (text[0] == '.' && text[1] == 'v' && text[2] >= '2' && text[2] <= '8')
			bytes *= (uint64_t)(text[2] - '0');
		else if (*text == '.' && type_bits(text))
			bytes *= type_bits(text) / 8;
		else if (*text == '[' &&
			 __builtin_mul_overflow(bytes, strtoull(text + 1, NULL, 10), &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

static void add_variable(const char *text, struct image *image)
{
	bool is_managed = memmem(text, strcspn(text, ";=[{"), ".managed", 8) != NULL;
	uint64_t *bytes = is_managed ? &image->managed_bytes : &image->device_bytes;

	if (__builtin_add_overflow(*bytes, declared_bytes(text), bytes))
		*bytes = UINT64_MAX;
}

/* Declarations begin with a word of their own; "st.global" is an instruction. */
static struct image read_ptx(const char *text)
{
	struct image image = {.is_known = true};

	for (const char *at = text; (at = strstr(at, ".global")) != NULL; at++)
		if (at == text || strchr(" \t\n", at[-1]))
			add_variable(at + sizeof(".global") - 1, &image);
	for (const char *at = text; (at = strstr(at, ".extern .func")) != NULL; at++) {
		size_t length = strcspn(at, ";");

		image.has_heap |= memmem(at, length, " malloc", 7) ||
				  memmem(at, length, " cudaLaunchDevice", 17);
		image.has_printf |= memmem(at, length, " vprintf", 8) != NULL;
	}
	return image;
}

/* PTX begins with comments and its ".version". */
static bool is_ptx(const char *text)
{
	const char *version = NULL;

	if (text[0] == '.' || text[0] == '/' || text[0] == '\n' || text[0] == ' ')
		version = strstr(text, ".version");
	return version != NULL;
}

struct image image_read(const void *data)
{
	/* Whoever gives an image promises the driver that all which it describes is there. */
	if (data && is_ptx(data))
		return read_ptx(data);
	return data ? read_elf(&(struct elf){.bytes = data, .size = UINT64_MAX / 2})
		    : (struct image){.is_known = false};
}

struct image image_read_file(const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct image image = {.is_known = false};
	int saved_errno = errno;
	struct file_identity file;
	size_t size;

	if (path && file_identify_path(path, &file) == 0 && file.is_regular &&
		file.size_bytes <= FILE_BYTES_MAX) {
		text = malloc(file.size_bytes + 1);
		if (text && file_read(path, text, file.size_bytes + 1, &size) == 0)
			image = is_ptx(text) ? read_ptx(text)
					     : read_elf(&(struct elf){(uint8_t *)text, size});
	}
	errno = saved_errno;
	return image;
}
