/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in the text form that Prometheus reads (version 0.0.4: prometheus.io/docs/instrumenting/exposition_formats).
 * Any byte may stand in a label's value: what is not UTF-8 becomes U+FFFD, and what would end the value is escaped.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct exposition_label {
	const char *name;
	const char *value; /* "": the label is left out, which means the same */
};

/* Begins a family. `type` is "gauge", "counter" or "histogram"; `help` is one line. */
void exposition_write_head(FILE *out, const char *name, const char *help, const char *type);

/* One sample with so many labels. */
void exposition_write(FILE *out, const char *name, const struct exposition_label *labels,
	size_t label_count, double value);
