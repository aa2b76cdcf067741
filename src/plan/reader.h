/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the Kubernetes API from files: YAML or JSON, of one or several documents, each an object or a list of them, as
 * kubectl writes them or a person does.
 *
 * Of YAML it reads what JSON has, and anchors and aliases. Merge keys and keys that are there twice are refused.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"

struct reader_object {
	json_t *object;	  /* has metadata, and a kind */
	const char *file; /* the caller's */
	size_t document;  /* 1 is the first */
	size_t line;	  /* 0: it is not known */
	size_t item;	  /* of a list; 0: it stands alone */
};

struct reader_list {
	struct reader_object *at;
	size_t count, room;
};

#define READER_LIST_NULL \
	{                \
		0        \
	}

/* Adds the objects of a text. -EINVAL with err set, which names file, line and what would be right; -ENOMEM. */
int reader_read_text(const char *file, const char *text, size_t bytes, struct reader_list *list,
	struct err *err) MUST_CHECK;

/* The same of a file; "-" is standard input. The path must live as long as the list. */
int reader_read_file(const char *path, struct reader_list *list, struct err *err) MUST_CHECK;

/* Adds one object, which is the caller's as well. -ENOMEM. */
int reader_append(struct reader_list *list, const struct reader_object *object) MUST_CHECK;

/* Where an object stands: "pods.yaml, line 12". */
#define READER_WHERE_BYTES 200
void reader_say_where(const struct reader_object *object, char ret_text[READER_WHERE_BYTES]);

/* Accepts what is all zero. */
void reader_deinit(struct reader_list *list);
