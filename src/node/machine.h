/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders and files that slices of several users share, held against the model of docs/machine.md: who may create, read,
 * write and remove what.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "node/user.h"

/* A folder or file that was looked at. */
struct machine_place {
	char path[512];
	char user[USER_NAME_BYTES]; /* "" where it is not there */
	unsigned mode;
	const char *what; /* it is for */
	char wrong[256];  /* how it breaks the model; "" where it does not */
	int unseen;	  /* not 0: it, or what is in it, could not be looked at: errno */
	bool is_missed;	  /* it is not there, and nothing is wrong for that */
	bool is_taken;	  /* it belongs to another user than the one whose it is to be */
	bool is_prepared; /* `vgpu prepare` makes it right */
	unsigned
		more; /* no place: so many more in this folder are not listed; wrong ones, where wrong is not "" */
};

struct machine {
	struct machine_place *list;
	unsigned count, capacity;
};

/* Looks at everything, which takes a moment. 0 or -ENOMEM with err set. The caller clears. */
int machine_look(struct machine *ret_machine, struct err *err) MUST_CHECK;

/* Fit for a zeroed one. */
void machine_clear(struct machine *machine);
