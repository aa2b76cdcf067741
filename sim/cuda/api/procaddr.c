/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress: the symbol that a base name meant at a CUDA version. */
#include <stddef.h>
#include <string.h>

#include "sim/cuda/api/entry.h"

enum form { BOTH, LEGACY, THREAD };

#define ENTRY(symbol, base, version, form) symbol##_fn symbol;
#include "sim/cuda/entry.def"

#define UNSUPPORTED(symbol, base, version, form) CUresult symbol(void);
#define UNLISTED(symbol)
#define VARIABLE(symbol)
#include "sim/cuda/unsupported.def"

struct row {
	const char *base;
	void *address;
	int version;
	enum form form;
};

static const struct row rows[] = {
#define ENTRY(symbol, base, version, form) {#base, (void *)symbol, version, form},
#include "sim/cuda/entry.def"
#define UNSUPPORTED(symbol, base, version, form) {#base, (void *)symbol, version, form},
#define UNLISTED(symbol)
#define VARIABLE(symbol)
#include "sim/cuda/unsupported.def"
};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

/*
 * Rows by base name, so that a query costs some tens of ns as in the real driver. Open addressing,
 * built once; the rows of one name are found by walking on to the first empty place.
 */
#define TABLE_SIZE 4096 /* power of two, several times the rows */
_Static_assert(ROW_COUNT * 3 < TABLE_SIZE, "table too full");
static uint16_t table[TABLE_SIZE]; /* index + 1 */
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static unsigned int hash_name(const char *name)
{
	unsigned int hash = 2166136261u;

	while (*name != '\0')
		hash = (hash ^ (unsigned char)*name++) * 16777619u;
	return (hash ^ hash >> 15) % TABLE_SIZE;
}

static void build_table(void)
{
	for (int i = 0; i < ROW_COUNT; i++) {
		unsigned int place = hash_name(rows[i].base);

		while (table[place] != 0)
			place = (place + 1) % TABLE_SIZE;
		table[place] = (uint16_t)(i + 1);
	}
}

/* The newest symbol for `name` not newer than `version`. */
static CUdriverProcAddressQueryResult find(
	const char *name, int version, bool is_thread, void **ret_address)
{
	const struct row *best = NULL;
	bool is_known = false;

	pthread_once(&table_once, build_table);
	for (unsigned int place = hash_name(name); table[place] != 0;
		place = (place + 1) % TABLE_SIZE) {
		const struct row *row = &rows[table[place] - 1];

		if (strcmp(row->base, name) != 0)
			continue;
		is_known = true;
		if (row->form == (is_thread ? LEGACY : THREAD) || row->version > version)
			continue;
		if (!best || row->version > best->version)
			best = row;
	}
	*ret_address = best ? best->address : NULL;
	if (best)
		return CU_GET_PROC_ADDRESS_SUCCESS;
	return is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

static bool is_valid(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return symbol && pfn && version > 0 &&
	       (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) == 0;
}

ENTRY_EARLY(cuGetProcAddress_v2,
	(const char *symbol, void **pfn, int version, cuuint64_t flags,
		CUdriverProcAddressQueryResult *status),
	(symbol, pfn, version, flags, status))
{
	CUdriverProcAddressQueryResult outcome;
	void *address;

	if (!is_valid(symbol, pfn, version, flags))
		return CUDA_ERROR_INVALID_VALUE;
	outcome = find(symbol, version,
		(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, &address);
	*pfn = address;
	if (status)
		*status = outcome;
	return CUDA_SUCCESS;
}

ENTRY_EARLY(cuGetProcAddress, (const char *symbol, void **pfn, int version, cuuint64_t flags),
	(symbol, pfn, version, flags))
{
	void *address;

	if (!is_valid(symbol, pfn, version, flags))
		return CUDA_ERROR_INVALID_VALUE;
	find(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0,
		&address);
	*pfn = address;
	return address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/*
 * NVIDIA's private tables are not simulated: the CUDA runtime, which needs them, does not start on
 * this driver.
 */
ENTRY_EARLY(cuGetExportTable, (const void **table_out, const CUuuid *id), (table_out, id))
{
	if (table_out)
		*table_out = NULL;
	return CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY_CALL(cuProfilerStart, (void), CUDA_SUCCESS)

ENTRY_CALL(cuProfilerStop, (void), CUDA_SUCCESS)
