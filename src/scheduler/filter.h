/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the nodes a pod is put on, and why not on the others. */
#pragma once

#include <stddef.h>

#include "base/bits.h"
#include "scheduler/books.h"
#include "scheduler/demand.h"

#define FILTER_NONE SIZE_MAX

/* The caller's names stay his. */
struct filter_request {
	const struct demand *demand;
	const char *const *names;
	size_t name_count;
};

struct filter_answer {
	size_t chosen;	/* index of the node's name; FILTER_NONE: it fits nowhere */
	char **reasons; /* for each name why not; NULL: it would do */
	double *scores; /* of those that would do */
	size_t name_count, fit_count;
	char *devices;	 /* the annotations; NULL where it fits nowhere */
	char *instances; /* NULL also without MIG */
};

/*
 * Decides it; the books do not change. Of nodes that are as full the one whose name comes first. -ENOMEM, or -EINVAL where the
 * chosen node has a device whose UUID no annotation can carry.
 */
int filter(struct books *books, const struct filter_request *request,
	struct filter_answer *ret_answer) MUST_CHECK;

/* Accepts what is all zero. */
void filter_deinit(struct filter_answer *answer);
