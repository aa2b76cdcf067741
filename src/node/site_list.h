/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the places where slices are, for those who look for them (node/sites.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/file.h"
#include "node/sites.h"

#define SITE_PATH_BYTES 4096

/* What stands at the path, which may be a link that is not followed. -EBADF where it is no regular file. */
int site_list_identify(const char *path, struct file_identity *ret_identity) MUST_CHECK;

/* The place of the region among those that were found; their count where it is not among them. */
size_t site_list_find(const struct sites *s, const struct file_identity *id);
bool site_list_has(const struct sites *s, const struct file_identity *id);

/* One more, of copies of the texts; folder may be NULL. NULL without memory. It is good until the next one. */
struct site *site_list_append(
	struct sites *s, const char *name, const char *folder, const char *region);

/* Frees what the site holds. */
void site_list_clear(struct site *site);

/* A name for a region by its path: of the folder where the file's own says nothing. Behind it what tells it from others of that name; NULL: nothing. */
void site_list_name(const char *path, const char *of, char *ret_name, size_t size);

/* Counts one more, and keeps the path of the first. */
void site_list_note(struct sites_some *some, const char *path);
