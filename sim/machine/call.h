/* SPDX-License-Identifier: Apache-2.0 */
/* The functions whose calls the machine counts: all that the simulated libraries export. */
#pragma once

#include <stdint.h>

#define CALLS_MAX 1280

/* The number of a function in the counts, by its exported name; -ENOENT if unknown. */
int call_find(const char *symbol);

/* The exported name of function `call`, or NULL after the last. */
const char *call_name(unsigned int call);

/* A hash of all names, in order: builds whose numbers differ do not share a machine. */
uint64_t call_hash(void);
