/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the places where slices are, for those who look for them. */
#include "node/site_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MOST \
	128 /* of a name that is made of a path: more than a pod's UID and a container's name are long */

int site_list_identify(const char *path, struct file_identity *ret_identity)
{
	int r = file_identify_at(AT_FDCWD, path, ret_identity);

	return r < 0 || ret_identity->is_regular ? r : -EBADF;
}

size_t site_list_find(const struct sites *s, const struct file_identity *id)
{
	size_t i = 0;

	while (i < s->count && (s->list[i].inode != id->inode || s->list[i].device != id->device))
		i++;
	return i;
}

bool site_list_has(const struct sites *s, const struct file_identity *id)
{
	return site_list_find(s, id) < s->count;
}

void site_list_clear(struct site *site)
{
	free(site->name);
	free(site->folder);
	free(site->region);
	free(site->mapped);
	free(site->own_path);
}

struct site *site_list_append(
	struct sites *s, const char *name, const char *folder, const char *region)
{
	struct site site = {.name = strdup(name),
		.folder = folder ? strdup(folder) : NULL,
		.region = strdup(region)};

	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 16;
		struct site *sites = reallocarray(s->list, capacity, sizeof(*sites));

		if (sites) {
			s->list = sites;
			s->capacity = capacity;
		}
	}
	if (!site.name || !site.region || (folder && !site.folder) || s->count == s->capacity) {
		site_list_clear(&site);
		return NULL;
	}
	s->list[s->count] = site;
	return &s->list[s->count++];
}

void site_list_name(const char *path, const char *of, char *ret_name, size_t size)
{
	const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t folder_length = (size_t)(file - path), length = strlen(file);
	const char *ending = strstr(file, ".cache");

	if (ending && ending[6] == '\0' && ending > file)
		length = (size_t)(ending - file);
	if ((strcmp(file, "region") == 0 || strstr(path, "/containers/")) && folder_length > 1) {
		const char *end = path + folder_length - 1, *start = end;

		while (start > path && start[-1] != '/')
			start--;
		file = start;
		length = (size_t)(end - start);
	}
	/* Anybody's, and a column of a table is as wide as the longest. */
	if (length > NAME_MOST)
		length = NAME_MOST;
	snprintf(ret_name, size, "%.*s%s%s", (int)length, file, of ? "@" : "", of ? of : "");
}

void site_list_note(struct sites_some *some, const char *path)
{
	if (!some->count++)
		snprintf(some->path, sizeof(some->path), "%s", path);
}
