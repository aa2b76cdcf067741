/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a board file. */
#pragma once

#include <stdbool.h>

#include "sim/machine/board.h"

enum {
	BOARD_KEYS = 0
#define TEXT(field)		   +1
#define NUMBER(field, least, most) +1
#define BYTES(field, least, most)  +1
#define WORD(field)		   +1
#include "sim/machine/board_key.def"
};

/* The number of a key, or -1. */
int board_key_find(const char *name);

/* The key that is spelt most like this. */
const char *board_key_nearest(const char *name);

/* The name of key `i`, of BOARD_KEYS. */
const char *board_key_name(int i);

/* Sets the field of a key; false: the value is not right. */
bool board_key_set(int i, const char *value, struct board *board);

/* What would be right, for complaints. The buffer is returned. */
const char *board_key_right(int i, char *buffer, size_t size);
