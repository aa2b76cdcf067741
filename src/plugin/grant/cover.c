/* SPDX-License-Identifier: Apache-2.0 */
/* What a container mounts of its own over what its limits are made of. */
#include "plugin/grant/cover.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plugin/grant/grant.h"

/* Without empty parts, "." and "..", as a runtime takes it; "/" is "". */
static char *clean(const char *path)
{
	char *whole = malloc(strlen(path) + 2), *end = whole;

	while (whole && *path) {
		size_t length = strcspn(path, "/");

		if (length == 2 && !strncmp(path, "..", 2)) {
			while (end > whole && *--end != '/')
				;
		} else if (length && (length > 1 || *path != '.')) {
			*end++ = '/';
			end = mempcpy(end, path, length);
		}
		path += length + (path[length] == '/');
	}
	if (whole)
		*end = '\0';
	return whole;
}

/* At it, or below. */
static bool is_within(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

/* Limits hold without turns and without a daemon, so a volume above their folders is none of ours: /run is often one. */
static int check(const char *path, const char *library, bool *ret_covers)
{
	const char *const whole[] = {GRANT_SHARE_FOLDER, GRANT_PRELOAD, library};
	const char *const within[] = {GRANT_TURNS_FOLDER, GRANT_MPS_FOLDER};
	_cleanup_free_ char *its = clean(path);

	if (!its)
		return -ENOMEM;
	*ret_covers = false;
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		*ret_covers |= is_within(its, whole[i]) || is_within(whole[i], its);
	for (size_t i = 0; i < ARRAY_SIZE(within); i++)
		*ret_covers |= is_within(its, within[i]);
	return 0;
}

static int keep_if_covering(const char *path, const char *library, char **ret_path)
{
	bool covers = false;
	int r = path && !*ret_path ? check(path, library, &covers) : 0;

	if (r || !covers)
		return r;
	*ret_path = strdup(path);
	return *ret_path ? 0 : -ENOMEM;
}

static int check_list(const json_t *list, const char *key, const char *library, char **ret_path)
{
	const json_t *one;
	int r = 0;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (!r)
			r = keep_if_covering(
				json_string_value(json_object_get(one, key)), library, ret_path);
	}
	return r;
}

int cover_find(const json_t *container, const char *hook, char **ret_path)
{
	_cleanup_free_ char *folder = NULL;
	_cleanup_free_ char *library = NULL;
	int r;

	*ret_path = NULL;
	if (asprintf(&folder, "%s/vgpu", hook) < 0)
		folder = NULL;
	library = folder ? clean(folder) : NULL;
	if (!library)
		return -ENOMEM;
	/* the kubelet mounts a file of its own there, which the container can write */
	r = keep_if_covering(
		json_string_value(json_object_get(container, "terminationMessagePath")), library,
		ret_path);
	if (!r)
		r = check_list(
			json_object_get(container, "volumeMounts"), "mountPath", library, ret_path);
	if (!r)
		r = check_list(json_object_get(container, "volumeDevices"), "devicePath", library,
			ret_path);
	return r;
}
