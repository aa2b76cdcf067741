/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a board file: one table makes the parser, the ranges, and what a complaint says is right. */
#include "sim/machine/board_key.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KiB 1024ull
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

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
} keys[BOARD_KEYS] = {
#define FIELD(field)		   offsetof(struct board, field), sizeof(((struct board *)NULL)->field)
#define TEXT(field)		   {#field, KEY_TEXT, FIELD(field), 0, 0},
#define NUMBER(field, least, most) {#field, KEY_NUMBER, FIELD(field), least, most},
#define BYTES(field, least, most)  {#field, KEY_BYTES, FIELD(field), least, most},
#define WORD(field)		   {#field, KEY_WORD, FIELD(field), 0, UINT64_MAX},
#include "sim/machine/board_key.def"
#undef FIELD
};

int board_key_find(const char *name)
{
	for (int i = 0; i < BOARD_KEYS; i++)
		if (!strcmp(keys[i].name, name))
			return i;
	return -1;
}

const char *board_key_name(int i)
{
	return keys[i].name;
}

const char *board_key_right(int i, char *buffer, size_t size)
{
	const struct key *key = &keys[i];

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
	while (*end == ' ' || *end == '\t')
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

bool board_key_set(int i, const char *value, struct board *board)
{
	const struct key *key = &keys[i];
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

const char *board_key_nearest(const char *name)
{
	size_t best = SIZE_MAX;
	const char *nearest = keys[0].name;

	for (int i = 0; i < BOARD_KEYS; i++) {
		size_t distance = name_distance(name, keys[i].name);

		if (distance < best) {
			best = distance;
			nearest = keys[i].name;
		}
	}
	return nearest;
}
