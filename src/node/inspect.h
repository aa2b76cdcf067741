/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is to live under a quota, as /proc tells: its library, and what it was told. */
#pragma once

#include <stdbool.h>

#include "policy/grant.h"
#include "policy/options.h"
#include "policy/share.h"

#define INSPECT_SHARES GRANT_SHARES /* the system's, and the one of VGPU_SHARE */

/* A share file, as the process sees it. */
struct inspected_share {
	const char *path;   /* NULL: there is none */
	const char *why;    /* what is wrong with it; NULL: nothing */
	unsigned line;	    /* where; 0: all of it */
	bool is_mount;	    /* mounted as a single file: it never changes for the process */
	struct share share; /* where nothing is wrong */
};

/* Where the process's region is, or is to be. */
struct inspected_region {
	char path[SHARE_PATH_BYTES]; /* as the process sees it */
	const char *file_system;
	const char *why,
		*right; /* why it cannot be there, and what would help; NULL: nothing is foreseen */
	bool is_strange; /* on a file system that might never answer, and was not looked at */
};

struct inspection {
	bool is_there;		  /* there is such a process */
	bool is_readable;	  /* and we may look at it; else nothing below is known */
	char library[512];	  /* the tenant library that it has loaded; "" for none */
	char driver[512];	  /* the CUDA driver, likewise */
	const char *preloaded_by; /* what put the library before all others; NULL: nothing */
	char before[256];	  /* the C library or the driver, put before it by LD_PRELOAD; "" */
	struct inspected_share shares[INSPECT_SHARES];
	struct inspected_region region;
	struct options options;
	bool has_rights_of_file; /* setuid and the like: no path of its environment counts */
	char *environment;	 /* zero-ended strings; the options point into it */
};

/* Looks at the process. The caller clears. */
void inspect_process(int pid, struct inspection *ret_inspection);

/* Frees what it holds; fit for a zeroed one. */
void inspect_clear(struct inspection *inspection);

/* The value of an option in the environment that the process began with; NULL where it has none. */
const char *inspect_option(const struct inspection *inspection, const char *name);
