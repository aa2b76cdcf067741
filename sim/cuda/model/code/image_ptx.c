/* SPDX-License-Identifier: Apache-2.0 */
/* Reading kernel images as far as a simulation needs them. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"

/*
 * Of PTX only declarations are read; code is skipped. Fat binaries hold compressed images: they are
 * taken unread, and any kernel name is found in them.
 */

/* Copies the words of a "// vgpu-sim" comment as "\1words\1"; other comments are dropped. */
static void strip_line(const char *text, const char *end, char **to)
{
	static const char mark[] = "vgpu-sim ";

	while (text < end && (*text == '/' || isspace((unsigned char)*text)))
		text++;
	if (strncmp(text, mark, sizeof(mark) - 1) != 0)
		return;
	text += sizeof(mark) - 1;
	*(*to)++ = '\1';
	while (text < end)
		*(*to)++ = *text++;
	*(*to)++ = '\1';
}

/* The text without comments, but for our own. */
static char *strip(const char *text)
{
	char *out = malloc(strlen(text) + 1);
	char *to = out;

	if (!out)
		return NULL;
	while (*text != '\0') {
		const char *end;

		if (text[0] == '/' && text[1] == '*') {
			end = strstr(text + 2, "*/");
			*to++ = ' ';
			text = end ? end + 2 : text + strlen(text);
		} else if (text[0] == '/' && text[1] == '/') {
			end = strchr(text, '\n');
			if (!end)
				end = text + strlen(text);
			strip_line(text, end, &to);
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
	if (length < 3 || at[0] != '.' || !strchr("usbf", at[1]))
		return is_word(at, length, ".pred") ? 1 : 0;
	return (size_t)strtoul(at + 2, NULL, 10) / 8;
}

struct variable {
	const char *name; /* NULL: none was found */
	size_t length;
	size_t element, count; /* of a vector, all of it */
	size_t bytes;
	size_t align;
	bool is_managed;
};

/*
 * Reads one variable up to one of the signs in `stops`: types, alignment, name, <names>, [count]. Returns
 * where it stopped.
 */
static const char *read_variable(const char *at, const char *stops, struct variable *ret_variable)
{
	size_t element = 0, count = 1, vector = 1, align = 0, length;

	memset(ret_variable, 0, sizeof(*ret_variable));
	while ((length = next_word(&at)) > 0 && !strchr(stops, *at)) {
		if (is_word(at, length, ".align")) {
			at += length;
			length = next_word(&at);
			align = (size_t)strtoul(at, NULL, 10);
		} else if (is_word(at, length, ".v2") || is_word(at, length, ".v4")) {
			vector = at[2] == '2' ? 2 : 4;
		} else if (*at == '[') {
			uint64_t number;

			at = image_read_expression(at + 1, &number);
			count *= number;
			length = 1;
		} else if (*at == '<') {
			count *= strtoull(at + 1, NULL, 0);
		} else if (is_word(at, length, ".managed")) {
			ret_variable->is_managed = true;
		} else if (at[0] == '.' && type_size(at, length) > 0) {
			element = type_size(at, length);
		} else if (at[0] != '.' && is_name(at[0]) && !isdigit((unsigned char)at[0])) {
			ret_variable->name = at;
			ret_variable->length = length;
		}
		at += length;
	}
	ret_variable->element = element * vector;
	ret_variable->count = count;
	ret_variable->bytes = element * vector * count;
	ret_variable->align = align > 0 ? align : element * vector;
	return *at != '\0' ? at : NULL;
}

static size_t align_up(size_t offset, size_t align)
{
	return align > 1 ? (offset + align - 1) / align * align : offset;
}

static int read_params(struct image_kernel *kernel, const char **place)
{
	const char *at = *place;
	size_t offset = 0;

	while (*at != ')') {
		struct image_param *param;
		struct variable variable;

		at = read_variable(at + 1, ",)", &variable);
		if (!at)
			return -EINVAL;
		if (!variable.name)
			continue;
		param = image_append((void **)&kernel->param, &kernel->param_count, sizeof(*param));
		if (!param)
			return -ENOMEM;
		offset = align_up(offset, variable.align);
		param->name = strndup(variable.name, variable.length);
		param->offset = offset;
		param->size = variable.bytes;
		offset += variable.bytes;
		if (param->name && strcmp(param->name, "duration_ns") == 0 && param->size == 8)
			kernel->duration_param = (int)kernel->param_count - 1;
	}
	*place = at + 1;
	return 0;
}

static int add_variable(struct image *image, const struct variable *variable)
{
	struct image_global *global;

	if (!variable->name || variable->bytes == 0)
		return 0;
	global = image_add_global(image, variable->name, variable->length);
	if (!global)
		return -ENOMEM;
	global->size = variable->bytes;
	global->align = variable->align;
	global->is_managed = variable->is_managed;
	return 0;
}

/* To the comma or semicolon that ends an initialiser. */
static const char *skip_initialiser(const char *at)
{
	int depth = 0;

	for (; *at && (depth > 0 || !strchr(",;", *at)); at++) {
		if (strchr("({", *at))
			depth++;
		else if (strchr(")}", *at))
			depth--;
	}
	return at;
}

/* Behind ".global" or ".const": variables that take device memory. */
static int read_global(struct image *image, const char **place)
{
	struct variable variable, next;
	const char *at = read_variable(*place, ",;=", &variable);
	int r = 0;

	while (at && r == 0) {
		r = add_variable(image, &variable);
		if (*at == '=')
			at = skip_initialiser(at);
		*place = at;
		if (*at != ',')
			return r;
		/* What stands before the first name is all the others', too. */
		at = read_variable(at + 1, ",;=", &next);
		next.bytes = next.count * variable.element;
		next.element = variable.element;
		next.align = variable.align;
		next.is_managed = variable.is_managed;
		variable = next;
	}
	return at ? r : -EINVAL;
}

/* From the opening brace to behind the closing one; *ret_frame_bytes is what .local adds up to. */
static const char *read_body(struct image *image, const char *at, uint64_t *ret_frame_bytes)
{
	size_t frame = 0, length;
	bool is_start = true; /* of a statement */
	int depth = 0;

	while ((length = next_word(&at)) > 0) {
		if (*at == '{')
			depth++;
		else if (*at == '}')
			depth--;
		if (is_word(at, length, ".local")) {
			struct variable variable;
			const char *end = read_variable(at + length, ";", &variable);

			if (!end)
				break;
			frame = align_up(frame, variable.align) + variable.bytes;
			at = end;
			continue;
		}
		if (is_start && (is_word(at, length, ".global") || is_word(at, length, ".const"))) {
			at += length;
			if (read_global(image, &at) != 0)
				break;
			continue;
		}
		is_start = strchr(";{}:", *at) != NULL;
		at += length;
		if (depth == 0)
			break;
	}
	*ret_frame_bytes = frame;
	return at;
}

/* The comments before an entry tell of it. */
struct notes {
	uint64_t duration_ns;
	uint64_t frame_bytes;
	bool has_fault;
};

/* "\1words\1" */
static const char *read_notes(struct image *image, const char *at, struct notes *notes)
{
	const char *end = strchr(++at, '\1');
	size_t length;

	while (at < end && (length = strcspn(at, " \t\r\1")) > 0) {
		const char *value = memchr(at, '=', length);

		if (value) {
			size_t key = (size_t)(value++ - at);
			size_t rest = length - key - 1;

			if (is_word(at, key, "duration_ns"))
				notes->duration_ns = strtoull(value, NULL, 10);
			else if (is_word(at, key, "frame_bytes"))
				notes->frame_bytes = strtoull(value, NULL, 10);
			else if (is_word(at, key, "faults"))
				notes->has_fault = *value == '1';
			else if (is_word(at, key, "code_bytes"))
				image->code_bytes = strtoull(value, NULL, 10);
			else if (is_word(at, key, "uses") && is_word(value, rest, "malloc"))
				image->has_malloc = true;
			else if (is_word(at, key, "uses") && is_word(value, rest, "printf"))
				image->has_printf = true;
		}
		at += length;
		at += strspn(at, " \t\r");
	}
	return end + 1;
}

/* Behind ".entry": the name, the parameters, and the code. */
static int read_entry(struct image *image, const char **place, const struct notes *notes)
{
	const char *at = *place;
	size_t length = next_word(&at);
	struct image_kernel *kernel;
	uint64_t frame = 0;
	int r = 0;

	if (length == 0 || !is_name(*at))
		return -EINVAL;
	kernel = image_add_kernel(image, at, length);
	if (!kernel)
		return -ENOMEM;
	at += length;
	next_word(&at);
	if (*at == '(')
		r = read_params(kernel, &at);
	/* Directives stand between parameters and code; a declaration has no code. */
	while ((length = next_word(&at)) > 0 && *at != '{' && *at != ';')
		at += length;
	if (r == 0 && *at == '{')
		at = read_body(image, at, &frame);
	kernel->duration_ns = notes->duration_ns;
	kernel->frame_bytes = notes->frame_bytes > 0 ? notes->frame_bytes : frame;
	kernel->has_fault = notes->has_fault;
	*place = at;
	return r;
}

/* One word outside of code, read with what belongs to it. */
static int read_word(struct image *image, const char **place, size_t length, struct notes *notes,
	bool *is_extern)
{
	const char *at = *place;
	uint64_t frame;
	int r = 0;

	*place += length;
	if (is_word(at, length, ".extern")) {
		*is_extern = true;
	} else if (is_word(at, length, ".entry")) {
		r = read_entry(image, place, notes);
		*notes = (struct notes){.duration_ns = IMAGE_DURATION_NONE};
	} else if (!*is_extern &&
		   (is_word(at, length, ".global") || is_word(at, length, ".const"))) {
		r = read_global(image, place);
	} else if (*is_extern && is_name(*at) && *at != '.') {
		image_note_needed(image, at, length);
	} else if (*at == '{') {
		*place = read_body(image, at, &frame);
	} else if (*at == ';' || *at == '}') {
		*is_extern = false;
	}
	return r;
}

int image_read_ptx(struct image *image, const char *text)
{
	struct notes notes = {.duration_ns = IMAGE_DURATION_NONE};
	bool is_extern = false;
	char *stripped = strip(text);
	const char *at = stripped;
	size_t length;
	int r = stripped ? 0 : -ENOMEM;

	while (r == 0 && (length = next_word(&at)) > 0) {
		if (*at == '\1')
			at = read_notes(image, at, &notes);
		else
			r = read_word(image, &at, length, &notes, &is_extern);
	}
	free(stripped);
	return r;
}
