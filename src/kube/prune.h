/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the API server without what nobody here reads, which is most of their text. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Reads JSON. Of each member whose key is among these, and whose value is a list, the list is empty then. unused ends with a NULL;
 * NULL: nothing is left out. NULL where it is no JSON, or there is no memory.
 */
json_t *prune_load(const char *text, size_t bytes, const char *const *unused);
