/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the configuration files: how a text becomes the value of a field. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"
#include "plugin/config/config.h"

enum key_kind { KEY_NAME, KEY_TEXT, KEY_PATH, KEY_SWITCH, KEY_WHOLE, KEY_REAL, KEY_POLICY };

struct key_row {
	const char *section, *key, *otherwise;
	enum key_kind kind;
	bool is_of_nodes; /* a node's own entry may say it */
	size_t offset;	  /* in struct config */
	double least, most;
	const char *bounds; /* in words */
};

extern const struct key_row config_keys[];
extern const size_t config_key_count;

/* Keeps a copy of a text as long as the configuration lives; NULL where there is no memory. */
const char *config_keep(struct config *config, const char *text, size_t length);

/* Sets the field. Returns NULL, or what would have been right; *ret_result is 0, -EINVAL or -ENOMEM. */
int config_set(struct config *config, const struct key_row *row, const char *text,
	const char **ret_right) MUST_CHECK;

/* Whether a text is a resource's name, DOMAIN/NAME. */
bool config_is_resource(const char *text);

/* False where the text is no such thing, and *ret_number is untouched. */
bool config_read_whole(const char *text, int64_t *ret_number);

/* The two files, each into a configuration that has its defaults. -EINVAL with err set, or -ENOMEM. */
int config_read_device_file(struct config *config, const char *text, size_t bytes,
	const char *flags[FLAG_COUNT], struct err *err) MUST_CHECK;
int config_read_node_file(
	struct config *config, const char *text, size_t bytes, struct err *err) MUST_CHECK;
