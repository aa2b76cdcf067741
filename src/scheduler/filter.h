/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the nodes a pod is put on, and why not on the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Why a node would not do. It has no padding, so two can be compared as bytes. */
struct filter_reason {
	uint16_t is_unregistered;
	uint16_t device_count;
	uint16_t devices
		[FIT_REASONS]; /* how many are out for each; where the node has too few, that alone */
};

/* "1/4 CardNotHealth, 3/4 CardInsufficientMemory" */
#define FILTER_WORDS_BYTES 1024
void filter_explain(const struct filter_reason *reason, char ret_words[FILTER_WORDS_BYTES]);

struct filter_answer {
	size_t chosen; /* index of the node's name; FILTER_NONE: it fits nowhere */
	const struct filter_reason **reasons; /* for each name; NULL: it would do */
	double *scores;			      /* of those that would do */
	size_t name_count, fit_count;
	char *devices;		  /* the annotations; NULL where it fits nowhere */
	char *instances;	  /* NULL also without MIG */
	struct kept_reason *kept; /* what these are: one for names that stand beside each other */
};

/*
 * Decides it; the books do not change. Of nodes that are as full the one whose name comes first. -ENOMEM, or -EINVAL where the
 * chosen node has a device whose UUID no annotation can carry.
 */
int filter(struct books *books, const struct filter_request *request,
	struct filter_answer *ret_answer) MUST_CHECK;

/* Accepts what is all zero. */
void filter_deinit(struct filter_answer *answer);
