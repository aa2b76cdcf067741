/* SPDX-License-Identifier: Apache-2.0 */
/* The boards that are built in, by name; board.h counts them. */
#pragma once

#include <stddef.h>

/* The text of a board, or NULL. */
const char *board_builtin_find(const char *name);

/* "h200x2, h200, ..." The buffer is returned. */
const char *board_builtin_names(char *buffer, size_t size);
