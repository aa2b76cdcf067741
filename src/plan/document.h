/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of YAML as JSON. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"

struct document_reader;

/* The text must live as long. The file's name is for messages. -ENOMEM. */
int document_reader_new(const char *file, const char *text, size_t bytes,
	struct document_reader **ret_reader) MUST_CHECK;

/* Accepts NULL. */
void document_reader_free(struct document_reader *reader);

enum {
	_DOCUMENT_E_SUCCESS = 0,
	DOCUMENT_E_END, /* there is no document any more */
};

/* The next document, for the caller to json_decref(). -EINVAL with err set, which names file and line; -ENOMEM. */
int document_reader_next(
	struct document_reader *reader, json_t **ret_document, struct err *err) MUST_CHECK;

/* The line in which the last document begins; 1 is the first. */
size_t document_reader_line(const struct document_reader *reader);

/* The line in which an element of the last document's list "items" begins; 0: there is none. */
size_t document_reader_item_line(const struct document_reader *reader, size_t item);
