/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an answer of ours is another than the recorded one: one table, with the reasons. A difference that it does not name
 * fails, and so does a row that no recording needs.
 */
#pragma once

#include <device_plugin.pb-c.h>
#include <jansson.h>

/* What is another than what was recorded. */
enum difference {
	NOT_HERE,	/* it is nothing that Allocate or the configuration does */
	REFUSED,	/* ours refuses what theirs does */
	CONFIG_REFUSED, /* ours refuses the configuration; value: a word of the message */
	ANSWERED, /* ours answers where theirs fails; value: the recording whose answer is the right one */
	MOUNT,	   /* a mount is read-only; name: where; value: "ro" */
	VARIABLE,  /* a variable has another value; NULL: it is absent */
	REGISTERS, /* ours offers as many slices; value: the number */
};

/* The parts alone, or the program before a kubelet and an API server. */
enum where { PARTS = 1, PROGRAM = 2, BOTH = PARTS | PROGRAM };

struct row {
	enum where where;
	const char *id; /* a beginning that ends with '*' is for all that have it */
	enum difference difference;
	const char *name, *value, *reason;
};

/* Which of the rows count. */
void differences_begin(enum where where);

/* The row, which is needed then, or NULL. The name may be NULL. */
const struct row *differences_find(const char *id, enum difference difference, const char *name);

/* The answer for the container with this number. */
void differences_compare(const char *id, unsigned number,
	const V1beta1__ContainerAllocateResponse *ours, const json_t *theirs);

/* Fails where a row was not needed. */
void differences_end(void);
