/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a program finds the driver's functions; the test client can take each. */
#pragma once

#include "gpu/abi/cuda.h"

struct door {
#define DOOR(symbol, base, version, per_thread) symbol##_fn *symbol;
#include "tests/tenant/door.def"
};

enum door_kind {
	DOOR_LINKED,	      /* -lcuda */
	DOOR_LINKED_THREAD,   /* -lcuda, built for per-thread default streams */
	DOOR_DLOPEN,	      /* dlopen, dlsym with the handle */
	DOOR_DEFAULT,	      /* dlsym(RTLD_DEFAULT) */
	DOOR_NEXT,	      /* dlsym(RTLD_NEXT) */
	DOOR_PROCADDR,	      /* cuGetProcAddress_v2 */
	DOOR_PROCADDR_THREAD, /* cuGetProcAddress_v2, per-thread default streams */
	DOOR_PROCADDR_V1,     /* cuGetProcAddress as CUDA 11.3 has it */
	DOOR_KINDS,
};

/* The name of a kind on the client's command line; NULL for no kind. */
const char *door_name(unsigned kind);

/* Fills the table. Returns 0, or -1 with the name of what was not found in *ret_missing. */
int door_open(enum door_kind kind, struct door *ret_door, const char **ret_missing);

/* The function with this name in the table, as an address; NULL where the table has none. */
void *door_find(const struct door *door, const char *symbol);
