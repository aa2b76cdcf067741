/* SPDX-License-Identifier: Apache-2.0 */
/* Reading kernel images as far as a simulation needs them. */
#include "sim/cuda/image.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * PTX is read for entries with their parameters and for global variables; code is skipped. Of a
 * cubin only the section names are read. Fat binaries hold compressed images: they are taken
 * unread, and any kernel name is found in them.
 */

/* Appends a zeroed element to an array. Returns it, or NULL. */
static void *append(void **array, unsigned int *count, size_t size)
{
	char *more = realloc(*array, (*count + 1) * size);

	if (more == NULL)
		return NULL;
	*array = more;
	memset(more + *count * size, 0, size);
	return more + (*count)++ * size;
}

static struct image_kernel *add_kernel(struct image *image, const char *name, size_t length)
{
	struct image_kernel *kernel =
		append((void **)&image->kernel, &image->kernel_count, sizeof(*kernel));

	if (kernel == NULL)
		return NULL;
	kernel->duration_param = -1;
	kernel->duration_ns = IMAGE_DURATION_NONE;
	kernel->name = strndup(name, length);
	return kernel->name != NULL ? kernel : NULL;
}

/*
 * The text without comments, but for the durations: "// vgpu-sim duration_ns=N" is left in place as
 * "\1N\1".
 */
static char *strip(const char *text)
{
	static const char mark[] = "vgpu-sim duration_ns=";
	char *out = malloc(strlen(text) + 1);
	char *to = out;

	if (out == NULL)
		return NULL;
	while (*text != '\0') {
		if (text[0] == '/' && text[1] == '*') {
			const char *end = strstr(text + 2, "*/");

			*to++ = ' ';
			text = end != NULL ? end + 2 : text + strlen(text);
		} else if (text[0] == '/' && text[1] == '/') {
			const char *end = strchr(text, '\n');
			const char *at;

			if (end == NULL)
				end = text + strlen(text);
			for (at = text + 2; at < end && isspace((unsigned char)*at); at++)
				;
			if (strncmp(at, mark, sizeof(mark) - 1) == 0) {
				at += sizeof(mark) - 1;
				*to++ = '\1';
				while (isdigit((unsigned char)*at))
					*to++ = *at++;
				*to++ = '\1';
			}
			text = end;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
	return out;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* The next word: a name with dots, a number, or one sign. Returns its length, 0 at the end. */
static size_t next_word(const char **at)
{
	size_t length = 0;

	while (isspace((unsigned char)**at))
		(*at)++;
	if (**at == '\0')
		return 0;
	while (is_name((*at)[length]))
		length++;
	return length > 0 ? length : 1;
}

static bool is_word(const char *at, size_t length, const char *word)
{
	return strlen(word) == length && strncmp(at, word, length) == 0;
}

/* The size of a PTX type word (".u64", ".b8"), or 0. */
static size_t type_size(const char *at, size_t length)
{
	if (length < 3 || at[0] != '.' || strchr("usbf", at[1]) == NULL)
		return is_word(at, length, ".pred") ? 1 : 0;
	return (size_t)strtoul(at + 2, NULL, 10) / 8;
}

/*
 * Reads one variable up to one of the signs in `stops`: types, alignment, name, [count]. Returns
 * where it stopped.
 */
static const char *read_variable(const char *at, const char *stops, const char **ret_name,
	size_t *ret_length, size_t *ret_size, size_t *ret_align)
{
	size_t element = 0, count = 1, align = 0, length;
	bool is_vector = false;

	*ret_name = NULL;
	while ((length = next_word(&at)) > 0 && strchr(stops, *at) == NULL) {
		if (is_word(at, length, ".align")) {
			at += length;
			length = next_word(&at);
			align = (size_t)strtoul(at, NULL, 10);
		} else if (is_word(at, length, ".v2") || is_word(at, length, ".v4")) {
			count *= at[2] == '2' ? 2 : 4;
			is_vector = true;
		} else if (*at == '[') {
			const char *number = at + 1;

			count *= (size_t)strtoull(number, NULL, 0);
			at = strchr(at, ']');
			if (at == NULL)
				return NULL;
			length = 1;
		} else if (at[0] == '.' && type_size(at, length) > 0) {
			element = type_size(at, length);
		} else if (at[0] != '.' && is_name(at[0]) && !isdigit((unsigned char)at[0])) {
			*ret_name = at;
			*ret_length = length;
		}
		at += length;
	}
	*ret_size = element * count;
	*ret_align = align > 0 ? align : is_vector ? element * count : element;
	return *at != '\0' ? at : NULL;
}

static int read_params(struct image_kernel *kernel, const char **place)
{
	const char *at = *place;
	size_t offset = 0;

	while (*at != ')') {
		struct image_param *param;
		const char *name;
		size_t length, size, align;

		at = read_variable(at + 1, ",)", &name, &length, &size, &align);
		if (at == NULL)
			return -EINVAL;
		if (name == NULL)
			continue;
		param = append((void **)&kernel->param, &kernel->param_count, sizeof(*param));
		if (param == NULL)
			return -ENOMEM;
		if (align > 0)
			offset = (offset + align - 1) / align * align;
		param->name = strndup(name, length);
		param->offset = offset;
		param->size = size;
		offset += size;
		if (param->name != NULL && strcmp(param->name, "duration_ns") == 0 && size == 8)
			kernel->duration_param = (int)kernel->param_count - 1;
	}
	*place = at + 1;
	return 0;
}

static const char *skip_body(const char *at)
{
	int depth = 0;

	do {
		if (*at == '{')
			depth++;
		else if (*at == '}')
			depth--;
		else if (*at == '\0')
			return at;
		at++;
	} while (depth > 0);
	return at;
}

/* Behind ".entry": the name, the parameters. */
static int read_entry(struct image *image, const char **place, uint64_t duration_ns)
{
	const char *at = *place;
	size_t length = next_word(&at);
	struct image_kernel *kernel;
	int r = 0;

	if (length == 0 || !is_name(*at))
		return -EINVAL;
	kernel = add_kernel(image, at, length);
	if (kernel == NULL)
		return -ENOMEM;
	kernel->duration_ns = duration_ns;
	at += length;
	next_word(&at);
	if (*at == '(')
		r = read_params(kernel, &at);
	*place = at;
	return r;
}

/* Behind ".global" or ".const" outside of code: a variable that takes device memory. */
static int read_global(struct image *image, const char **place)
{
	struct image_global *global;
	const char *name;
	size_t length, size, align;
	const char *at = read_variable(*place, ";=", &name, &length, &size, &align);

	if (at == NULL)
		return -EINVAL;
	at = strchr(at, ';');
	*place = at != NULL ? at : *place;
	if (name == NULL || size == 0)
		return 0;
	global = append((void **)&image->global, &image->global_count, sizeof(*global));
	if (global == NULL)
		return -ENOMEM;
	global->name = strndup(name, length);
	global->size = size;
	return global->name != NULL ? 0 : -ENOMEM;
}

static int read_ptx(struct image *image, const char *text)
{
	uint64_t duration_ns = IMAGE_DURATION_NONE;
	bool is_extern = false;
	char *stripped = strip(text);
	const char *at = stripped;
	size_t length;
	int r = stripped != NULL ? 0 : -ENOMEM;

	while (r == 0 && (length = next_word(&at)) > 0) {
		if (*at == '\1') {
			duration_ns = strtoull(at + 1, NULL, 10);
			at = strchr(at + 1, '\1');
			at = at != NULL ? at + 1 : "";
			continue;
		}
		if (*at == '{') {
			at = skip_body(at);
			continue;
		}
		if (is_word(at, length, ".extern")) {
			is_extern = true;
		} else if (is_word(at, length, ".entry")) {
			at += length;
			r = read_entry(image, &at, duration_ns);
			duration_ns = IMAGE_DURATION_NONE;
			continue;
		} else if (!is_extern &&
			   (is_word(at, length, ".global") || is_word(at, length, ".const"))) {
			at += length;
			r = read_global(image, &at);
			continue;
		} else if (*at == ';' || *at == '}') {
			is_extern = false;
		}
		at += length;
	}
	free(stripped);
	return r;
}

static int read_cubin(struct image *image, const unsigned char *data)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)data;
	const Elf64_Shdr *section;
	const char *names;

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr) ||
		header->e_shnum == 0 || header->e_shstrndx >= header->e_shnum)
		return -EINVAL;
	section = (const Elf64_Shdr *)(const void *)(data + header->e_shoff);
	names = (const char *)data + section[header->e_shstrndx].sh_offset;
	for (int i = 0; i < header->e_shnum; i++) {
		const char *name = names + section[i].sh_name;

		if (strncmp(name, ".text.", 6) == 0 &&
			add_kernel(image, name + 6, strlen(name + 6)) == NULL)
			return -ENOMEM;
	}
	return 0;
}

int image_read(const void *data, struct image **ret_image)
{
	/* The first words of NVIDIA's fat binaries: the container, and the wrapper around it. */
	static const uint32_t fat_magic = 0xba55ed50, wrapper_magic = 0x466243b1;
	const unsigned char *bytes = data;
	struct image *image = calloc(1, sizeof(*image));
	uint32_t magic;
	int r = 0;

	if (image == NULL)
		return -ENOMEM;
	memcpy(&magic, bytes, 4);
	if (memcmp(bytes, ELFMAG, SELFMAG) == 0)
		r = read_cubin(image, bytes);
	else if (magic == fat_magic || magic == wrapper_magic)
		image->is_opaque = true;
	else if (strstr(data, ".version") != NULL)
		r = read_ptx(image, data);
	else
		r = -EINVAL;
	if (r != 0) {
		image_free(image);
		return r;
	}
	*ret_image = image;
	return 0;
}

void image_free(struct image *image)
{
	if (image == NULL)
		return;
	for (unsigned int i = 0; i < image->kernel_count; i++) {
		for (unsigned int j = 0; j < image->kernel[i].param_count; j++)
			free(image->kernel[i].param[j].name);
		free(image->kernel[i].param);
		free(image->kernel[i].name);
	}
	for (unsigned int i = 0; i < image->global_count; i++)
		free(image->global[i].name);
	free(image->kernel);
	free(image->global);
	free(image);
}

const struct image_kernel *image_find(const struct image *image, const char *name)
{
	for (unsigned int i = 0; i < image->kernel_count; i++) {
		if (strcmp(image->kernel[i].name, name) == 0)
			return &image->kernel[i];
	}
	return NULL;
}
