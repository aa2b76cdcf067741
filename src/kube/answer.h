/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to one attempt, and its meaning. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"
#include "kube/client.h"
#include "net/http.h"

struct verb {
	const char *method, *content; /* the header of a body's type */
	bool is_repeatable;	      /* twice is the same as once */
	bool is_stream;		      /* never repeated, and its body has been taken */
};

/* All zero: nothing has come. */
struct kube_answer {
	int status;
	char *bytes;
	size_t count, room;
	json_t *json;		   /* parsed by kube_answer_classify() */
	const char *const *unused; /* for prune_load() */
};

struct kube_attempt {
	enum kube_outcome outcome;
	bool may_repeat;
	struct err words;
};

/* -EMSGSIZE, -ENOMEM. */
int kube_answer_add(
	struct kube_answer *answer, const char *bytes, size_t count, size_t most_bytes) MUST_CHECK;
void kube_answer_clear(struct kube_answer *answer);

void kube_answer_classify(const struct verb *verb, const struct http_result *result,
	struct kube_answer *answer, struct kube_attempt *ret_attempt);
