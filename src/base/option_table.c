/* SPDX-License-Identifier: Apache-2.0 */
/* Options from an environment, by a table of the program's. */
#include "base/option_table.h"

#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"

#define FAMILY_END "<i>"

unsigned option_count(const struct option_row *row)
{
	size_t length = strlen(row->name), end = strlen(FAMILY_END);

	return length > end && strcmp(row->name + length - end, FAMILY_END) == 0 ? OPTION_MEMBERS
										 : 1;
}

void option_name(const struct option_row *row, unsigned i, char *ret_name, size_t size)
{
	bool is_family = option_count(row) > 1;
	size_t length = strlen(row->name) - (is_family ? strlen(FAMILY_END) : 0);

	if (length + 3 > size)
		length = size - 3;
	memcpy(ret_name, row->name, length);
	if (is_family && i >= 10)
		ret_name[length++] = (char)('0' + i / 10);
	if (is_family)
		ret_name[length++] = (char)('0' + i % 10);
	ret_name[length] = '\0';
}

/* NULL, or what is right. */
static const char *read_size(const char *value, uint64_t *ret_bytes)
{
	int r = parse_size(value, ret_bytes);

	if (r == 0)
		return NULL;
	*ret_bytes = 0;
	return parse_advice(r);
}

/* HAMi gives 100 or more, too, where it means no limit. */
static const char *read_percent(const char *value, unsigned *ret_percent)
{
	uint64_t percent;

	if (parse_u64(value, UINT32_MAX, &percent) != 0)
		return "a whole number of percent, 0 to 100";
	*ret_percent = percent >= 100 ? 0 : (unsigned)percent;
	return NULL;
}

static bool read_number(const struct option_row *row, const char *value, unsigned *ret_number)
{
	uint64_t number;

	if (parse_u64(value, row->most, &number) != 0 || number < row->least)
		return false;
	*ret_number = (unsigned)number;
	return true;
}

static const char *read_switch(const char *value, bool *ret_switch)
{
	*ret_switch = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
	return *ret_switch || strcmp(value, "false") == 0 || strcmp(value, "0") == 0
		       ? NULL
		       : "true or 1, false or 0";
}

static bool read_choice(const struct option_row *row, const char *value, unsigned *ret_choice)
{
	const char *at = row->words;
	size_t length = strlen(value);

	*ret_choice = 0;
	while (*at) {
		size_t spelling = strcspn(at, "| ");

		if (spelling == length && memcmp(at, value, length) == 0)
			return true;
		at += spelling;
		*ret_choice += *at == ' ';
		at += *at != '\0';
	}
	*ret_choice = row->otherwise_word;
	return false;
}

/* Writes a default, and then the value if there is one. True where the value is understood. */
static bool read_one(
	const struct option_row *row, const char *value, void *field, const char **right)
{
	*right = NULL;
	switch (row->kind) {
	case OPTION_SIZE:
		*(uint64_t *)field = 0;
		*right = value ? read_size(value, field) : NULL;
		return !*right;
	case OPTION_PERCENT:
		*(unsigned *)field = 0;
		*right = value ? read_percent(value, field) : NULL;
		return !*right;
	case OPTION_NUMBER:
		*(unsigned *)field = row->otherwise;
		return !value || read_number(row, value, field);
	case OPTION_SWITCH:
		*(bool *)field = false;
		*right = value ? read_switch(value, field) : NULL;
		return !*right;
	case OPTION_CHOICE:
		*(unsigned *)field = 0;
		return !value || read_choice(row, value, field);
	case OPTION_LEVELS:
		*right = "off, error, warn, info, debug or trace, of all topics or as topic=level";
		*(const char **)field = value;
		return !value || !log_check_levels(value);
	default:
		*(const char **)field = value;
		return true;
	}
}

/* The distance of a family's fields. */
static size_t size_of(const struct option_row *row)
{
	return row->kind == OPTION_SIZE ? sizeof(uint64_t) : sizeof(unsigned);
}

void option_table_read(const struct option_row *rows, size_t count,
	const struct option_source *source, void *ret_options)
{
	char name[64];

	for (const struct option_row *row = rows; row < rows + count; row++)
		for (unsigned i = 0; i < option_count(row); i++) {
			char *field = (char *)ret_options + row->offset + i * size_of(row);
			struct option_fault fault = {.row = row, .name = name};

			option_name(row, i, name, sizeof(name));
			fault.value = row->kind == OPTION_PATH && source->has_no_paths
					      ? NULL
					      : source->lookup(source->context, name);
			/* `env NAME= program` leaves an empty value behind: the same as unset */
			if (fault.value && !*fault.value)
				fault.value = NULL;
			if (!read_one(row, fault.value, field, &fault.right) && source->report)
				source->report(source->context, &fault);
		}
}
