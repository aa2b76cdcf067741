/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the description of a machine.
 *
 * A file must give every key or start from a built-in board with `base = NAME`, so that a new key
 * cannot be silently zero in an old file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine/board_builtin.h"
#include "sim/machine/board_key.h"
#include "sim/machine/mig.h"

/* ASCII alone, whatever the locale. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* How deep `base` may go: a built-in board on a built-in board, and a file on that. */
#define BASES_MAX 4

/* One text being read, and where a complaint goes. */
struct reading {
	const char *name;
	int line;
	int depth;
	int given[BOARD_KEYS]; /* the line that gave it; 0 not given; -1 by the base */
	struct board board;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 3, 4))) static int complain(
	struct reading *reading, int error, const char *format, ...)
{
	int used = 0;
	va_list args;

	if (!reading->why_size)
		return error;
	if (reading->line)
		used = snprintf(
			reading->why, reading->why_size, "%s:%d: ", reading->name, reading->line);
	else
		used = snprintf(reading->why, reading->why_size, "%s: ", reading->name);
	if (used < 0 || (size_t)used >= reading->why_size)
		return error;
	va_start(args, format);
	vsnprintf(reading->why + used, reading->why_size - (size_t)used, format, args);
	va_end(args);
	return error;
}

static int parse_text(struct reading *reading, const char *text);

static int read_base(struct reading *reading, const char *name)
{
	struct reading base = {.name = name,
		.depth = reading->depth + 1,
		.why = reading->why,
		.why_size = reading->why_size};
	const char *text = board_builtin_find(name);
	char names[256];
	int r;

	for (int i = 0; i < BOARD_KEYS; i++)
		if (reading->given[i])
			return complain(reading, -EINVAL,
				"base = %s: the base must stand before every other key", name);
	if (!text)
		return complain(reading, -EINVAL,
			"base = %s: no such board is built in; one of these would be right: %s",
			name, board_builtin_names(names, sizeof(names)));
	if (base.depth > BASES_MAX)
		return complain(reading, -EINVAL, "base = %s: boards based on each other", name);
	memset(&base.board, 0, sizeof(base.board));
	r = parse_text(&base, text);
	if (r)
		return r;
	memcpy(&reading->board, &base.board, sizeof(base.board));
	for (int i = 0; i < BOARD_KEYS; i++)
		reading->given[i] = -1;
	return 0;
}

static int read_line(struct reading *reading, const char *name, const char *value)
{
	int key = board_key_find(name);
	char right[128];

	if (!strcmp(name, "base"))
		return read_base(reading, value);
	if (key < 0)
		return complain(reading, -EINVAL,
			"%s = %s: there is no key '%s'; the nearest is '%s'", name, value, name,
			board_key_nearest(name));
	if (reading->given[key] > 0)
		return complain(reading, -EINVAL, "%s = %s: line %d gives this key already", name,
			value, reading->given[key]);
	if (!board_key_set(key, value, &reading->board))
		return complain(reading, -EINVAL, "%s = %s: not right; it must be %s", name, value,
			board_key_right(key, right, sizeof(right)));
	reading->given[key] = reading->line;
	return 0;
}

static int check_given(struct reading *reading)
{
	char right[128];

	for (int i = 0; i < BOARD_KEYS; i++)
		if (!reading->given[i])
			return complain(reading, -EINVAL,
				"%s is not given; it must be %s (or start with base = %s)",
				board_key_name(i), board_key_right(i, right, sizeof(right)),
				BOARD_DEFAULT);
	return 0;
}

static int check_memory(struct reading *reading)
{
	const struct board *b = &reading->board;

	if (b->chunk_bytes & (b->chunk_bytes - 1))
		return complain(reading, -EINVAL,
			"chunk_bytes = %" PRIu64 ": not right; it must be a power of two",
			b->chunk_bytes);
	if (b->small_max_bytes > b->chunk_bytes)
		return complain(reading, -EINVAL,
			"small_max_bytes = %" PRIu64
			": not right; it must be at most chunk_bytes, %" PRIu64,
			b->small_max_bytes, b->chunk_bytes);
	if (b->pool_step_bytes % b->chunk_bytes)
		return complain(reading, -EINVAL,
			"pool_step_bytes = %" PRIu64
			": not right; it must be a multiple of chunk_bytes, %" PRIu64,
			b->pool_step_bytes, b->chunk_bytes);
	if (b->context_bytes + b->context_extra_bytes + b->init_bytes > b->total_bytes)
		return complain(reading, -EINVAL,
			"total_bytes = %" PRIu64
			": not right; one context (context_bytes, context_extra_bytes, init_bytes) "
			"must fit",
			b->total_bytes);
	return 0;
}

static int check_pci(struct reading *reading)
{
	const struct board *b = &reading->board;
	int steps = b->device_count - 1;

	if (b->pci_bus_first + b->pci_bus_step * steps > 255)
		return complain(reading, -EINVAL,
			"pci_bus_step = %d: not right; bus %d + %d * %d must be at most 255",
			b->pci_bus_step, b->pci_bus_first, b->pci_bus_step, steps);
	if (b->pci_slot_first + b->pci_slot_step * steps > 31)
		return complain(reading, -EINVAL,
			"pci_slot_step = %d: not right; slot %d + %d * %d must be at most 31",
			b->pci_slot_step, b->pci_slot_first, b->pci_slot_step, steps);
	if (steps > 0 && !b->pci_bus_step && !b->pci_slot_step)
		return complain(reading, -EINVAL,
			"pci_slot_step = 0: not right; with several devices it or pci_bus_step "
			"must be at least 1");
	return 0;
}

/* Checks what no single line can show. */
static int check_whole(struct reading *reading)
{
	int r = check_given(reading);

	if (!r)
		r = check_memory(reading);
	if (!r && strcmp(reading->board.mig_family, "none") != 0 &&
		!mig_profile_at(&reading->board, 0))
		r = complain(reading, -EINVAL,
			"mig_family = %s: not right; there is no such family",
			reading->board.mig_family);
	return r ? r : check_pci(reading);
}

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (is_blank(*text))
		text++;
	while (end > text && is_blank(end[-1]))
		end--;
	*end = '\0';
	return text;
}

/* One line, which is changed: "key = value # comment", or nothing but a comment. */
static int parse_line(struct reading *reading, char *line)
{
	char *content, *equals;

	line[strcspn(line, "#")] = '\0';
	content = trim(line);
	if (!*content)
		return 0;
	equals = strchr(content, '=');
	if (!equals)
		return complain(reading, -EINVAL, "'%s' is not of the form key = value", content);
	*equals = '\0';
	return read_line(reading, trim(content), trim(equals + 1));
}

static int parse_text(struct reading *reading, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[512];
		int r;

		reading->line++;
		if (length >= sizeof(line))
			return complain(
				reading, -EINVAL, "longer than %zu bytes", sizeof(line) - 1);
		memcpy(line, text, length);
		line[length] = '\0';
		text += length + (text[length] == '\n');
		r = parse_line(reading, line);
		if (r)
			return r;
	}
	reading->line = 0;
	return check_whole(reading);
}

int board_parse(
	const char *name, const char *text, struct board *ret_board, char *ret_why, size_t why_size)
{
	struct reading reading = {.name = name, .why = ret_why, .why_size = why_size};
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	size_t length = strlen(base);
	int r;

	/* With its padding: boards are compared as bytes. */
	memset(&reading.board, 0, sizeof(reading.board));
	r = parse_text(&reading, text);
	if (r)
		return r;
	if (length > 6 && !strcmp(base + length - 6, ".board"))
		length -= 6;
	if (length >= sizeof(reading.board.name))
		length = sizeof(reading.board.name) - 1;
	memset(reading.board.name, 0, sizeof(reading.board.name));
	memcpy(reading.board.name, base, length);
	memcpy(ret_board, &reading.board, sizeof(*ret_board));
	return 0;
}
