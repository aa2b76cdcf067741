/* SPDX-License-Identifier: Apache-2.0 */
/* Options from an environment, by a table of the program's: read once, checked whole, never guessed at. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_SIZE,	/* uint64_t of bytes, see parse_size() */
	OPTION_PERCENT, /* unsigned, 0 to 99; 100 or more is 0, for no limit */
	OPTION_NUMBER,	/* unsigned within the bounds */
	OPTION_SWITCH,	/* bool: true or 1, false or 0 */
	OPTION_CHOICE, /* unsigned: which word; words are a space apart, and spellings of one a '|' */
	OPTION_LEVELS, /* const char *: log levels by topic */
	OPTION_TEXT,   /* const char *: the environment's own string */
	OPTION_PATH,   /* the same, of a file or folder that is opened or made */
};

#define OPTION_MEMBERS 16 /* of a family, whose name ends in "_<i>": i is 0 to 15 */

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t offset;		 /* of the field, or a family's array of them */
	unsigned least, most;	 /* of a number */
	unsigned otherwise;	 /* a number that is not given or not understood */
	const char *words;	 /* of a choice: the first is for what is not given */
	unsigned otherwise_word; /* of a choice: for a word that is none of them */
};

/* A value that is not understood; its field has a default. */
struct option_fault {
	const struct option_row *row;
	const char *name, *value; /* the name is a family member's own, and goes with the call */
	const char *right; /* what is right, in words; NULL: the row's bounds or words say it */
};

/* Where values come from, and where faults go. */
struct option_source {
	const char *(*lookup)(void *context, const char *name);		 /* NULL, or the value */
	void (*report)(void *context, const struct option_fault *fault); /* NULL: nowhere */
	void *context;
	bool has_no_paths; /* what it says of OPTION_PATH is not asked for */
};

/* Writes every field of the table into the program's struct. Values must live as long as it. */
void option_table_read(const struct option_row *rows, size_t count,
	const struct option_source *source, void *ret_options);

/* The name of the row's i-th option. Its end is cut where it does not fit. */
void option_name(const struct option_row *row, unsigned i, char *ret_name, size_t size);

/* How many options the row stands for. */
unsigned option_count(const struct option_row *row);
