/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the exported functions. */
#include "sim/nvml/node.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"

/* The pointers make a row without a function a link error. */
static const struct {
	const char *name;
	const void *function;
} entries[] = {
#define ENTRY(symbol) {#symbol, (const void *)symbol},
#include "sim/nvml/entry.def"
};

const char *entry_name(unsigned int entry)
{
	return entry < ENTRY_COUNT && entries[entry].function ? entries[entry].name : NULL;
}
