/* SPDX-License-Identifier: Apache-2.0 */
/* Doors: linked names, dlsym in its forms, and both versions of cuGetProcAddress. */
#include "tests/tenant/door.h"

#include <dlfcn.h>
#include <string.h>

#define LIBCUDA "libcuda.so.1"

enum { STREAMS_LEGACY = 1, STREAMS_PER_THREAD = 2 }; /* flags of cuGetProcAddress */

/*
 * Only here is the driver reached by name: this is what "linked" means. A program that finds all of
 * CUDA at run time is compiled with DOOR_FOUND_ONLY and is not linked with it.
 */
#ifndef DOOR_FOUND_ONLY
#define DOOR(symbol, base, version, per_thread) extern symbol##_fn symbol;
#include "tests/tenant/door.def"
extern cuMemAllocAsync_ptsz_fn cuMemAllocAsync_ptsz;
extern cuMemFreeAsync_ptsz_fn cuMemFreeAsync_ptsz;
extern cuMemAllocFromPoolAsync_ptsz_fn cuMemAllocFromPoolAsync_ptsz;
extern cuLaunchKernel_ptsz_fn cuLaunchKernel_ptsz;
extern cuMemMapArrayAsync_ptsz_fn cuMemMapArrayAsync_ptsz;
extern cuStreamSynchronize_ptsz_fn cuStreamSynchronize_ptsz;
extern cuMemsetD8_v2_ptds_fn cuMemsetD8_v2_ptds;
extern cuMemcpyAsync_ptsz_fn cuMemcpyAsync_ptsz;
extern cuMemcpyHtoD_v2_ptds_fn cuMemcpyHtoD_v2_ptds;
extern cuMemcpyDtoHAsync_v2_ptsz_fn cuMemcpyDtoHAsync_v2_ptsz;
extern cuMemcpy2DAsync_v2_ptsz_fn cuMemcpy2DAsync_v2_ptsz;
extern cuLaunchHostFunc_ptsz_fn cuLaunchHostFunc_ptsz;
extern cuStreamBeginCapture_v2_ptsz_fn cuStreamBeginCapture_v2_ptsz;
extern cuStreamEndCapture_ptsz_fn cuStreamEndCapture_ptsz;
extern cuGraphInstantiateWithParams_ptsz_fn cuGraphInstantiateWithParams_ptsz;
extern cuGraphUpload_ptsz_fn cuGraphUpload_ptsz;
extern cuGraphLaunch_ptsz_fn cuGraphLaunch_ptsz;

static const struct door linked = {
#define DOOR(symbol, base, version, per_thread) .symbol = symbol,
#include "tests/tenant/door.def"
};

static const struct door linked_thread = {
#define DOOR(symbol, base, version, per_thread) .symbol = per_thread,
#include "tests/tenant/door.def"
};

#endif

struct row {
	const char *symbol, *base;
	int version;
	size_t offset;
};

static const struct row rows[] = {
#define DOOR(symbol, base, version, per_thread) \
	{#symbol, base, version, offsetof(struct door, symbol)},
#include "tests/tenant/door.def"
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const names[DOOR_KINDS] = {
	[DOOR_LINKED] = "linked",
	[DOOR_LINKED_THREAD] = "linked-thread",
	[DOOR_DLOPEN] = "dlopen",
	[DOOR_DEFAULT] = "default",
	[DOOR_NEXT] = "next",
	[DOOR_PROCADDR] = "procaddr",
	[DOOR_PROCADDR_THREAD] = "procaddr-thread",
	[DOOR_PROCADDR_V1] = "procaddr-v1",
};

const char *door_name(unsigned kind)
{
	return kind < DOOR_KINDS ? names[kind] : NULL;
}

static void *slot_of(const struct door *door, const struct row *row)
{
	void *function;

	memcpy(&function, (const char *)door + row->offset, sizeof(function));
	return function;
}

static void *ask_driver(enum door_kind kind, void *get, const struct row *row)
{
	void *function = NULL;
	cuuint64_t flags = kind == DOOR_PROCADDR_THREAD ? STREAMS_PER_THREAD : STREAMS_LEGACY;
	CUdriverProcAddressQueryResult status;
	cuGetProcAddress_fn *get_v1 = (cuGetProcAddress_fn *)get;
	cuGetProcAddress_v2_fn *get_v2 = (cuGetProcAddress_v2_fn *)get;
	CUresult r = kind == DOOR_PROCADDR_V1
			     ? get_v1(row->base, &function, row->version, flags)
			     : get_v2(row->base, &function, row->version, flags, &status);

	return r == CUDA_SUCCESS ? function : NULL;
}

int door_open(enum door_kind kind, struct door *ret_door, const char **ret_missing)
{
	void *library = RTLD_DEFAULT, *get = NULL, *function;

	*ret_missing = LIBCUDA;
	if (kind == DOOR_LINKED || kind == DOOR_LINKED_THREAD) {
#ifdef DOOR_FOUND_ONLY
		return -1;
#else
		*ret_door = kind == DOOR_LINKED ? linked : linked_thread;
		return 0;
#endif
	}
	if (kind == DOOR_NEXT) {
		library = RTLD_NEXT;
	} else if (kind != DOOR_DEFAULT) {
		library = dlopen(LIBCUDA, RTLD_NOW);
		if (!library)
			return -1;
	}
	if (kind >= DOOR_PROCADDR) {
		get = dlsym(library,
			kind == DOOR_PROCADDR_V1 ? "cuGetProcAddress" : "cuGetProcAddress_v2");
		*ret_missing = "cuGetProcAddress";
		if (!get)
			return -1;
	}
	for (unsigned i = 0; i < ROWS; i++) {
		if (get)
			function = ask_driver(kind, get, &rows[i]);
		else
			function = dlsym(library, rows[i].symbol);
		*ret_missing = rows[i].symbol;
		if (!function)
			return -1;
		memcpy((char *)ret_door + rows[i].offset, &function, sizeof(function));
	}
	return 0;
}

void *door_find(const struct door *door, const char *symbol)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (strcmp(rows[i].symbol, symbol) == 0)
			return slot_of(door, &rows[i]);
	return NULL;
}
