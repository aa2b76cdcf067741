/* SPDX-License-Identifier: Apache-2.0 */
/* How one place of the model (docs/machine.md) is judged: what is there, and the folders above it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "node/machine.h"

/* What a place has to be. */
enum kind {
	FOLDER,
	FILE_OF_OURS,
	FOLDER_ABOVE, /* or a link to one; where it is sticky, others may write to it */
};

struct rule {
	const char *what;
	enum kind kind;
	uid_t owner;
	unsigned forbidden; /* bits of its mode */
	unsigned needed;
};

/* Adds a place; NULL where there is no memory: the list is short then. */
struct machine_place *place_append(struct machine *m, const char *path, const char *what);

/* Says how it breaks the model, behind what was said before. */
void place_blame(struct machine_place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A call that looked at it failed: that is wrong, or, where it is not for this user to look, said to be unseen. */
void place_fail(struct machine_place *place, int error);

/* Looks at one place; true where it is there and right. */
bool place_look(struct machine *m, const char *path, const struct rule *rule);

/* The same, and nothing is said where it is not there. */
bool place_look_if_there(struct machine *m, const char *path, const struct rule *rule);

/*
 * Looks at all folders above a place that is believed, and adds those that are wrong: who may rename what is in one of them
 * chooses what is believed. Each is to be root's, and nobody else may write to it, but where it is sticky.
 */
void place_look_above(struct machine *m, const char *path);
