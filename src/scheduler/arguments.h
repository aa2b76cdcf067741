/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kube-scheduler sends with a request: a pod, and the names of thousands of nodes. Objects of JSON for each name would cost
 * more than the decision, so plain names are read where they stand.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"

struct arguments {
	json_t *object;	    /* without NodeNames, or with an empty list of them */
	const char **names; /* those that are texts */
	size_t name_count;
	bool has_names; /* a list, be it empty */
	json_t *list;	/* what the names are of; NULL: they are in texts */
	char *texts;
};

/* -EINVAL with err set: it is no JSON object; -ENOMEM. */
int arguments_read(const char *body, size_t bytes, struct arguments *ret_arguments,
	struct err *err) MUST_CHECK;

/* The names as they came, for who sends them back; NULL where there is no list, or no memory. */
json_t *arguments_list(const struct arguments *arguments);

/* Accepts what is all zero. */
void arguments_deinit(struct arguments *arguments);
