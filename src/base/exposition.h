/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in the text form that Prometheus reads (version 0.0.4: prometheus.io/docs/instrumenting/exposition_formats).
 * Any byte may stand in a label's value: what is not UTF-8 becomes U+FFFD, and what would end the value is escaped.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/bits.h"

#define EXPOSITION_NUMBER_BYTES 24

struct exposition_label {
	const char *name;
	const char *value; /* "": the label is left out, which means the same */
};

/* Samples of one name. `type` is "gauge", "counter" or "histogram"; `help` is one line. */
struct exposition_family {
	const char *name, *type, *help;
};

/*
 * A row of a table of what a program tells, as a family called <id>_family. The page of metrics is made of the same rows, and a row that
 * is not used breaks the build.
 */
#define EXPOSITION_FAMILY(id, type, unit, name, labels, help) \
	static const struct exposition_family id##_family = {name, type, help};
#define EXPOSITION_LABELS(set, labels)

/* Begins a family. */
void exposition_write_head(FILE *out, const struct exposition_family *family);

/* One sample with so many labels. */
void exposition_write(FILE *out, const char *name, const struct exposition_label *labels,
	size_t label_count, double value);

/*
 * Labels as they stand in a sample, without braces, for who has many samples with the same: exposition_write_with() has them
 * as such a text, and behind it more of them, or "".
 */
void exposition_write_labels(FILE *out, const struct exposition_label *labels, size_t label_count);
void exposition_write_with(
	FILE *out, const char *name, const char *labels, const char *more, double value);

/* The same with the labels as arguments, each in braces. */
#define EXPOSITION_WRITE(out, name, value, ...)                                         \
	do {                                                                            \
		const struct exposition_label labels_[] = {__VA_ARGS__};                \
		exposition_write((out), (name), labels_, ARRAY_SIZE(labels_), (value)); \
	} while (0)

/* A number as a label's value, for as long as the block lasts. */
#define EXPOSITION_NUMBER(number) \
	exposition_number((long long)(number), (char[EXPOSITION_NUMBER_BYTES]){0})
const char *exposition_number(long long number, char text[EXPOSITION_NUMBER_BYTES]);
