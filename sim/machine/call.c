/* SPDX-License-Identifier: Apache-2.0 */
/* The functions whose calls the machine counts. */
#include "sim/machine/call.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {
#define ENTRY(symbol, base, version, form) #symbol,
#include "sim/cuda/entry.def"
#define ENTRY(symbol) #symbol,
#include "sim/nvml/entry.def"
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))
_Static_assert(NAME_COUNT <= CALLS_MAX, "more functions than counts");

int call_find(const char *symbol)
{
	for (unsigned int i = 0; i < NAME_COUNT; i++)
		if (!strcmp(names[i], symbol))
			return (int)i;
	return -ENOENT;
}

const char *call_name(unsigned int call)
{
	return call < NAME_COUNT ? names[call] : NULL;
}

/* FNV-1a, with the end of each name. */
uint64_t call_hash(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned int i = 0; i < NAME_COUNT; i++)
		for (size_t j = 0; j <= strlen(names[i]); j++)
			hash = (hash ^ (uint8_t)names[i][j]) * UINT64_C(0x100000001b3);
	return hash;
}
