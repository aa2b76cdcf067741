/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel image tells about the device memory that it will take. */
#include "tenant/memory/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "policy/device_runtime.h"
#include "policy/ptx.h"

/* A larger one is no image that we know, and is refused. */
#define IMAGE_BYTES_MAX	 (UINT64_C(1) << 30)

#define SECTIONS_AT_ONCE 16

/* A bit of a symbol's st_other in a cubin. */
#define SYMBOL_IS_MANAGED 4

/* An ELF image and how many bytes of it may be read. */
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

/* A function that the image calls and does not have is the device runtime's. */
static void note_call(const char *name, uint64_t room, struct image *image)
{
	const char *end = memchr(name, 0, room);

	if (!end)
		return;
	image->has_heap |= device_runtime_is_heap(name, (size_t)(end - name));
	image->has_printf |= device_runtime_is_printf(name, (size_t)(end - name));
}

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = UINT64_MAX;
}

/* False where the table is not whole. */
static bool read_symbols(const struct elf *elf, const Elf64_Shdr *table, struct image *image)
{
	const Elf64_Shdr *names = section(elf, table->sh_link);
	const Elf64_Sym *symbol = part(elf, table->sh_offset, table->sh_size);
	const char *text = names ? part(elf, names->sh_offset, names->sh_size) : NULL;

	if (!symbol || !text)
		return false;
	for (uint64_t i = 0; i < table->sh_size / sizeof(*symbol); i++) {
		if (symbol[i].st_other & SYMBOL_IS_MANAGED)
			add_bytes(&image->managed_bytes, symbol[i].st_size);
		if (symbol[i].st_shndx == SHN_UNDEF && symbol[i].st_name < names->sh_size)
			note_call(text + symbol[i].st_name, names->sh_size - symbol[i].st_name,
				image);
	}
	return true;
}

static struct image read_elf(const struct elf *elf)
{
	const Elf64_Ehdr *head = part(elf, 0, sizeof(*head));
	struct image image = {.is_known = false};
	unsigned count = 0;

	if (head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
		head->e_ident[EI_CLASS] == ELFCLASS64)
		count = head->e_shnum;
	image.is_known = count > 0;
	for (unsigned i = 0; i < count && image.is_known; i++) {
		const Elf64_Shdr *s = section(elf, i);

		image.is_known = s && !(s->sh_flags & SHF_COMPRESSED) &&
				 (s->sh_type != SHT_SYMTAB || read_symbols(elf, s, &image));
		if (s && s->sh_flags & SHF_ALLOC)
			add_bytes(&image.device_bytes, s->sh_size);
	}
	return image.is_known ? image : (struct image){.is_known = false};
}

/* Text that is not understood is as an unknown image, unless it may have what nothing shows after loading. */
static struct image read_text(const char *text, size_t size)
{
	struct ptx ptx;

	if (!ptx_read(text, size, &ptx))
		return (struct image){.hides_managed = ptx_names_managed(text, size)};
	return (struct image){.is_known = true,
		.device_bytes = ptx.device_bytes,
		.managed_bytes = ptx.managed_bytes,
		.has_heap = ptx.has_heap,
		.has_printf = ptx.has_printf};
}

/* Its first four characters are such as text has. What is behind a zero is not looked at. */
static bool is_text(const char *data, size_t size)
{
	for (size_t i = 0; i < 4; i++)
		if (i == size || data[i] == '\0' ||
			!(strchr("\t\n\v\f\r\xef\xbb\xbf", data[i]) ||
				(data[i] >= ' ' && data[i] <= '~')))
			return false;
	return true;
}

/* Copies what the program has there; the kernel tells where it cannot be read. */
static int read_bytes(const void *from, size_t size, void *ret_bytes)
{
	struct iovec there = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
	struct iovec here = {.iov_base = ret_bytes, .iov_len = size};
	ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

	if (n < 0 && errno != EFAULT) {
		memcpy(ret_bytes, from, size); /* not allowed here */
		n = (ssize_t)size;
	}
	return n == (ssize_t)size ? 0 : -EFAULT;
}

/* The bytes of the program's image, with a zero behind them. */
static int copy_bytes(const void *from, size_t size, void **ret_copy)
{
	_cleanup_free_ char *copy = FAULT_OUT_OF_MEMORY() ? NULL : malloc(size + 1);
	int r = copy ? read_bytes(from, size, copy) : -ENOMEM;

	if (r < 0)
		return r;
	copy[size] = '\0';
	*ret_copy = copy;
	copy = NULL;
	return 0;
}

static void reach(uint64_t at, uint64_t bytes, uint64_t *end)
{
	uint64_t to = at;

	add_bytes(&to, bytes);
	if (to > *end)
		*end = to;
}

/* How far the sections of an ELF image go, which has their table there. */
static int reach_sections(const char *table, unsigned count, uint64_t *end)
{
	Elf64_Shdr sections[SECTIONS_AT_ONCE];

	for (unsigned i = 0; i < count; i++) {
		unsigned left = count - i, at = i % SECTIONS_AT_ONCE;
		unsigned more = left < SECTIONS_AT_ONCE ? left : SECTIONS_AT_ONCE;

		if (at == 0 && read_bytes(table + (uint64_t)i * sizeof(*sections),
				       more * sizeof(*sections), sections) < 0)
			return -EFAULT;
		if (sections[at].sh_type != SHT_NOBITS)
			reach(sections[at].sh_offset, sections[at].sh_size, end);
	}
	return 0;
}

/* How far an ELF image in memory goes, by what it describes; 0: it describes nothing. */
static int elf_bytes(const void *data, uint64_t *ret_bytes)
{
	uint64_t end = sizeof(Elf64_Ehdr);
	Elf64_Ehdr head;
	int r = 0;

	*ret_bytes = 0;
	/* What is no ELF image may be shorter than the head of one. */
	if (memcmp(data, ELFMAG, SELFMAG) != 0)
		return 0;
	if (read_bytes(data, sizeof(head), &head) < 0)
		return -EFAULT;
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shnum == 0 ||
		head.e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	reach(head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr), &end);
	reach(head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize, &end);
	if (end <= IMAGE_BYTES_MAX)
		r = reach_sections((const char *)data + head.e_shoff, head.e_shnum, &end);
	*ret_bytes = end;
	return r;
}

static struct image read_copy(const char *copy, size_t size)
{
	return is_text(copy, size) ? read_text(copy, size)
				   : read_elf(&(struct elf){(const uint8_t *)copy, size});
}

void image_take(const void *data, struct image_source *ret_source)
{
	*ret_source = (struct image_source){.data = data};
}

int image_open(const void *data, struct image_source *ret_source)
{
	int saved_errno = errno, r = 0;
	uint64_t size = 0;

	image_take(data, ret_source);
	if (data && is_text(data, PTX_TO_ZERO))
		size = strlen(data);
	else if (data)
		r = elf_bytes(data, &size);
	if (r == 0 && size)
		r = size > IMAGE_BYTES_MAX ? -EFBIG : copy_bytes(data, size, &ret_source->copy);
	errno = saved_errno;
	if (r < 0 || !size)
		return r;
	ret_source->data = ret_source->copy;
	/* Text ends with a zero, which another thread may have made an earlier one. */
	if (is_text(ret_source->copy, size))
		size = strlen(ret_source->copy);
	ret_source->image = read_copy(ret_source->copy, size);
	return 0;
}

int image_open_file(const char *path, struct image_source *ret_source)
{
	_cleanup_free_ char *text = NULL;
	int saved_errno = errno, r;
	struct file_identity file;
	size_t size;

	*ret_source = (struct image_source){.data = NULL};
	r = file_identify_path(path, &file);
	if (r == 0 && (!file.is_regular || file.size_bytes > IMAGE_BYTES_MAX))
		r = file.is_regular ? -EFBIG : -ENOENT;
	if (r == 0) {
		text = FAULT_OUT_OF_MEMORY() ? NULL : malloc(file.size_bytes + 1);
		r = text ? file_read(path, text, file.size_bytes + 1, &size) : -ENOMEM;
	}
	errno = saved_errno;
	if (r < 0)
		return r;
	ret_source->image = read_copy(text, size);
	ret_source->copy = text;
	ret_source->data = text;
	text = NULL;
	return 0;
}

void image_close(struct image_source *source)
{
	free(source->copy);
	source->copy = NULL;
}
