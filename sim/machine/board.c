/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the description of a machine.
 *
 * The keys are one table, board_key.def: it makes the parser, the ranges and what a complaint says
 * would be right. A file must give every key or start from a built-in board with `base = NAME`, so
 * that a new key cannot be silently zero in an old file. The built-in boards are the files of
 * sim/boards, put into the binary by the assembler: no generator is needed to build, and what
 * `vgpu-sim boards` prints can be saved, changed and loaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/board.h"

/* ASCII alone, whatever the locale. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

#define KiB 1024ull
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

/* Far above any honest description; a file of another kind is refused instead of read whole. */
#define BOARD_FILE_MAX_BYTES (64 * KiB)

/* How deep `base` may go: a built-in board on a built-in board, and a file on that. */
#define BOARD_BASE_MAX 4

/* clang-format off */
#define BUILTINS(X) \
	X(h200x2, "h200x2") \
	X(h200, "h200") \
	X(h200x8, "h200x8") \
	X(h100, "h100") \
	X(a100_40, "a100-40") \
	X(t4, "t4")
#define EMBED(symbol, name) \
	__asm__(".pushsection .rodata\n" \
		".global board_text_" #symbol "\n" \
		".hidden board_text_" #symbol "\n" \
		"board_text_" #symbol ":\n" \
		".incbin \"sim/boards/" name ".board\"\n" \
		".byte 0\n" \
		".popsection\n"); \
	extern const char board_text_##symbol[] __attribute__((visibility("hidden")));
/* clang-format on */
BUILTINS(EMBED)

static const struct builtin {
	const char *name;
	const char *text;
} builtins[] = {
#define ROW(symbol, name) {name, board_text_##symbol},
	BUILTINS(ROW)
#undef ROW
};
#define BUILTIN_COUNT (sizeof(builtins) / sizeof(builtins[0]))

enum key_kind {
	KEY_TEXT,
	KEY_NUMBER,
	KEY_BYTES,
	KEY_WORD,
};

static const struct key {
	const char *name;
	enum key_kind kind;
	size_t offset;
	size_t size;
	uint64_t least;
	uint64_t most;
} keys[] = {
#define FIELD(field)		   offsetof(struct board, field), sizeof(((struct board *)NULL)->field)
#define TEXT(field)		   {#field, KEY_TEXT, FIELD(field), 0, 0},
#define NUMBER(field, least, most) {#field, KEY_NUMBER, FIELD(field), least, most},
#define BYTES(field, least, most)  {#field, KEY_BYTES, FIELD(field), least, most},
#define WORD(field)		   {#field, KEY_WORD, FIELD(field), 0, UINT64_MAX},
#include "sim/machine/board_key.def"
#undef FIELD
};
#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

/* One text being read, and where a complaint goes. */
struct reading {
	const char *name;
	int line;
	int depth;
	int given[KEY_COUNT]; /* the line that gave it; 0 not given; -1 by the base */
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

/* What a value of this key looks like, for complaints. */
static const char *key_right(const struct key *key, char *buffer, size_t size)
{
	switch (key->kind) {
	case KEY_TEXT:
		snprintf(buffer, size, "a text of 1 to %zu bytes", key->size - 1);
		break;
	case KEY_NUMBER:
		snprintf(buffer, size, "a whole number from %" PRIu64 " to %" PRIu64, key->least,
			key->most);
		break;
	case KEY_BYTES:
		snprintf(buffer, size,
			"a size from %" PRIu64 " to %" PRIu64 " bytes, such as 2097152 or 2MiB",
			key->least, key->most);
		break;
	case KEY_WORD:
		snprintf(buffer, size, "a whole number");
		break;
	}
	return buffer;
}

static bool parse_word(const char *text, bool has_unit, uint64_t *ret_value)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {{"", 1}, {"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB}};
	unsigned long long value;
	uint64_t product;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	if (errno)
		return false;
	while (is_blank(*end))
		end++;
	for (size_t i = 0; i < (has_unit ? sizeof(units) / sizeof(units[0]) : 1); i++)
		if (!strcmp(end, units[i].name)) {
			if (__builtin_mul_overflow((uint64_t)value, units[i].factor, &product))
				return false;
			*ret_value = product;
			return true;
		}
	return false;
}

static bool key_set(const struct key *key, const char *value, struct board *board)
{
	char *field = (char *)board + key->offset;
	uint64_t number;

	if (key->kind == KEY_TEXT) {
		if (!*value || strlen(value) >= key->size)
			return false;
		memset(field, 0, key->size);
		memcpy(field, value, strlen(value));
		return true;
	}
	if (!parse_word(value, key->kind == KEY_BYTES, &number) || number < key->least ||
		number > key->most)
		return false;
	if (key->kind == KEY_NUMBER)
		*(int *)field = (int)number;
	else
		*(uint64_t *)field = number;
	return true;
}

/* The fewest letters to change, add or drop to make one of the other. */
static size_t name_distance(const char *a, const char *b)
{
	size_t row[64];
	size_t b_length = strlen(b);

	if (b_length >= 64)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);
			size_t shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = changed < shorter ? changed : shorter;
		}
	}
	return row[b_length];
}

static const char *nearest_key(const char *name)
{
	size_t best = SIZE_MAX;
	const char *nearest = keys[0].name;

	for (size_t i = 0; i < KEY_COUNT; i++) {
		size_t distance = name_distance(name, keys[i].name);

		if (distance < best) {
			best = distance;
			nearest = keys[i].name;
		}
	}
	return nearest;
}

static const struct builtin *find_builtin(const char *name)
{
	for (size_t i = 0; i < BUILTIN_COUNT; i++)
		if (!strcmp(builtins[i].name, name))
			return &builtins[i];
	return NULL;
}

/* "h200x2, h200, ..." */
static const char *builtin_names(char *buffer, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < BUILTIN_COUNT && used < size; i++)
		used += (size_t)snprintf(
			buffer + used, size - used, "%s%s", i ? ", " : "", builtins[i].name);
	return buffer;
}

static int parse_text(struct reading *reading, const char *text);

static int read_base(struct reading *reading, const char *value)
{
	const struct builtin *builtin = find_builtin(value);
	struct reading base = {.depth = reading->depth + 1};
	char names[256];
	int r;

	for (size_t i = 0; i < KEY_COUNT; i++)
		if (reading->given[i])
			return complain(reading, -EINVAL,
				"base = %s: the base must stand before every other key", value);
	if (!builtin)
		return complain(reading, -EINVAL,
			"base = %s: no such board is built in; one of these would be right: %s",
			value, builtin_names(names, sizeof(names)));
	if (base.depth > BOARD_BASE_MAX)
		return complain(reading, -EINVAL, "base = %s: boards based on each other", value);
	base.name = builtin->name;
	base.why = reading->why;
	base.why_size = reading->why_size;
	memset(&base.board, 0, sizeof(base.board));
	r = parse_text(&base, builtin->text);
	if (r)
		return r;
	memcpy(&reading->board, &base.board, sizeof(base.board));
	for (size_t i = 0; i < KEY_COUNT; i++)
		reading->given[i] = -1;
	return 0;
}

static int read_line(struct reading *reading, const char *key_name, const char *value)
{
	char right[128];

	if (!strcmp(key_name, "base"))
		return read_base(reading, value);
	for (size_t i = 0; i < KEY_COUNT; i++) {
		if (strcmp(key_name, keys[i].name))
			continue;
		if (reading->given[i] > 0)
			return complain(reading, -EINVAL, "%s = %s: line %d gives this key already",
				key_name, value, reading->given[i]);
		if (!key_set(&keys[i], value, &reading->board))
			return complain(reading, -EINVAL, "%s = %s: not right; it must be %s",
				key_name, value, key_right(&keys[i], right, sizeof(right)));
		reading->given[i] = reading->line;
		return 0;
	}
	return complain(reading, -EINVAL, "%s = %s: there is no key '%s'; the nearest is '%s'",
		key_name, value, key_name, nearest_key(key_name));
}

/* What no single line can show. */
static int check_whole(struct reading *reading)
{
	const struct board *b = &reading->board;
	char right[128];

	for (size_t i = 0; i < KEY_COUNT; i++)
		if (!reading->given[i])
			return complain(reading, -EINVAL,
				"%s is not given; it must be %s (or start with base = %s)",
				keys[i].name, key_right(&keys[i], right, sizeof(right)),
				BOARD_DEFAULT);
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
	if (b->pci_bus_first + b->pci_bus_step * (b->device_count - 1) > 255)
		return complain(reading, -EINVAL,
			"pci_bus_step = %d: not right; bus %d + %d * %d must be at most 255",
			b->pci_bus_step, b->pci_bus_first, b->pci_bus_step, b->device_count - 1);
	if (b->pci_slot_first + b->pci_slot_step * (b->device_count - 1) > 31)
		return complain(reading, -EINVAL,
			"pci_slot_step = %d: not right; slot %d + %d * %d must be at most 31",
			b->pci_slot_step, b->pci_slot_first, b->pci_slot_step, b->device_count - 1);
	if (b->device_count > 1 && !b->pci_bus_step && !b->pci_slot_step)
		return complain(reading, -EINVAL,
			"pci_slot_step = 0: not right; with several devices it or pci_bus_step "
			"must "
			"be at least 1");
	return 0;
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

static int parse_text(struct reading *reading, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[512];
		char *equals, *content;
		int r;

		reading->line++;
		if (length >= sizeof(line))
			return complain(
				reading, -EINVAL, "longer than %zu bytes", sizeof(line) - 1);
		memcpy(line, text, length);
		line[length] = '\0';
		text += length + (text[length] == '\n');
		line[strcspn(line, "#")] = '\0';
		content = trim(line);
		if (!*content)
			continue;
		equals = strchr(content, '=');
		if (!equals)
			return complain(
				reading, -EINVAL, "'%s' is not of the form key = value", content);
		*equals = '\0';
		r = read_line(reading, trim(content), trim(equals + 1));
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

static int load_file(const char *path, struct board *ret_board, char *ret_why, size_t why_size)
{
	struct reading nothing = {.name = path, .why = ret_why, .why_size = why_size};
	_cleanup_free_ char *text = malloc(BOARD_FILE_MAX_BYTES + 1);
	_cleanup_file_ FILE *file = fopen(path, "re");
	size_t size;

	if (!file)
		return complain(&nothing, -errno, "cannot be opened: %s", strerror(errno));
	if (!text)
		return complain(&nothing, -ENOMEM, "out of memory");
	size = fread(text, 1, BOARD_FILE_MAX_BYTES + 1, file);
	if (ferror(file))
		return complain(&nothing, -EIO, "cannot be read");
	if (size > BOARD_FILE_MAX_BYTES || memchr(text, '\0', size))
		return complain(&nothing, -EINVAL, "not a board file: too long, or not text");
	text[size] = '\0';
	return board_parse(path, text, ret_board, ret_why, why_size);
}

int board_load(const char *name_or_path, struct board *ret_board, char *ret_why, size_t why_size)
{
	const struct builtin *builtin = find_builtin(name_or_path);
	size_t length = strlen(name_or_path);
	char names[256];

	if (builtin)
		return board_parse(builtin->name, builtin->text, ret_board, ret_why, why_size);
	if (strchr(name_or_path, '/') ||
		(length > 6 && !strcmp(name_or_path + length - 6, ".board")))
		return load_file(name_or_path, ret_board, ret_why, why_size);
	if (why_size)
		snprintf(ret_why, why_size,
			"no board '%s' is built in; there are %s (a file needs a '/' or the ending "
			".board)",
			name_or_path, builtin_names(names, sizeof(names)));
	return -ENOENT;
}

const char *board_builtin_name(unsigned int i)
{
	return i < BUILTIN_COUNT ? builtins[i].name : NULL;
}

const char *board_builtin_text(unsigned int i)
{
	return i < BUILTIN_COUNT ? builtins[i].text : NULL;
}

/* A bijection that leaves no trace of its argument's order (the finisher of MurmurHash3). */
static uint64_t scatter(uint64_t x)
{
	x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
	x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

static uint64_t device_number(const struct board *board, int device, uint64_t purpose)
{
	return scatter(scatter(scatter(board->uuid_seed) + (uint64_t)device) + purpose);
}

void board_uuid(const struct board *board, int device, uint8_t ret_uuid[16])
{
	uint64_t halves[2] = {device_number(board, device, 1), device_number(board, device, 2)};

	memcpy(ret_uuid, halves, sizeof(halves));
	/* Version 4, variant 1, as UUIDs made of random bits say of themselves. */
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x40);
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80);
}

void board_pci(const struct board *board, int device, unsigned int *ret_bus, unsigned int *ret_slot)
{
	*ret_bus = (unsigned int)(board->pci_bus_first + device * board->pci_bus_step);
	*ret_slot = (unsigned int)(board->pci_slot_first + device * board->pci_slot_step);
}

uint64_t board_serial(const struct board *board, int device)
{
	return 1650000000000ull + device_number(board, device, 3) % 100000000000ull;
}
