/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin keeps of each container it has prepared. */
#include "plugin/host/kept.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "node/folder.h"

#define FOLDER_MODE	0700
#define FILE_MODE	0600
#define LOCK_WAIT_NS	UINT64_C(5000000000)
#define FILE_MOST_BYTES (2 * SHARE_FILE_BYTES)
#define SUFFIX		".json"
#define NAME_BYTES	(CONTAINER_KEY_BYTES + 8)
#define FORMAT		1

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

int kept_open(const char *state, struct kept_folder *ret_folder, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	_cleanup_fd_ int state_fd = -1;
	uint64_t deadline_ns = clock_now_ns() + LOCK_WAIT_NS;
	struct timespec pause = {.tv_nsec = 1000000};
	int r = folder_make(state, 0755, &state_fd, err);

	if (r < 0)
		return r;
	r = folder_make_at(state_fd, "containers", FOLDER_MODE, &folder.folder_fd);
	if (r < 0)
		return err_set(err, -r, "make %.300s/containers: %s", state, strerror(-r));
	folder.lock_fd = openat(state_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (folder.lock_fd < 0)
		return err_set(err, errno, "open %.300s/lock: %s", state, strerror(errno));
	while ((r = file_lock_byte(folder.lock_fd, 0)) == -EAGAIN && clock_now_ns() < deadline_ns)
		nanosleep(&pause, NULL);
	if (r < 0)
		return err_set(
			err, -r, "%.300s/lock is held by another plugin: %s", state, strerror(-r));
	*ret_folder = folder;
	folder = (struct kept_folder)KEPT_FOLDER_NULL;
	return 0;
}

void kept_close(struct kept_folder *folder)
{
	cleanup_fd(&folder->lock_fd);
	cleanup_fd(&folder->folder_fd);
	*folder = (struct kept_folder)KEPT_FOLDER_NULL;
}

/* Letters, digits and dashes, the first no dash: what a UID and a container's name are made of. */
static bool is_name(const char *text, size_t most)
{
	size_t length = strlen(text);

	if (!length || length > most || !isalnum((unsigned char)text[0]))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '-')
			return false;
	return true;
}

int kept_key(const char *pod_uid, const char *container, char ret_key[CONTAINER_KEY_BYTES])
{
	if (!is_name(pod_uid, KEPT_POD_BYTES - 1) || !is_name(container, 63))
		return -EINVAL;
	snprintf(ret_key, CONTAINER_KEY_BYTES, "%s_%s", pod_uid, container);
	return 0;
}

static int copy_text(const json_t *object, const char *key, char *to, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || (size_t)snprintf(to, size, "%s", text) >= size)
		return -EBADMSG;
	return 0;
}

/* One that is not there, or too long to be one, is "". */
static void copy_name(const json_t *object, const char *key, char *to, size_t size)
{
	if (copy_text(object, key, to, size) < 0)
		*to = 0;
}

static bool is_cache(const char *name)
{
	size_t length = strlen(name);

	return length > 6 && name[0] != '.' && !strchr(name, '/') &&
	       !strcmp(name + length - 6, ".cache");
}

/* The file's name is the key; what stands in it is held against that. */
static int decode(const char *text, size_t length, const char *key, struct kept *ret_kept)
{
	_cleanup_(cleanup_json) json_t *json =
		json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	struct kept kept = {.wanted_s = 0};
	char container[64], right[CONTAINER_KEY_BYTES];
	struct share_fault fault;
	const char *share = json_string_value(json_object_get(json, "share"));

	if (json_integer_value(json_object_get(json, "format")) != FORMAT || !share ||
		share_parse(share, strlen(share), &kept.container.share, &fault) < 0 ||
		copy_text(json, "pod", kept.pod_uid, sizeof(kept.pod_uid)) < 0 ||
		copy_text(json, "container", container, sizeof(container)) < 0 ||
		copy_text(json, "cache", kept.container.cache, sizeof(kept.container.cache)) < 0 ||
		copy_text(json, "version", kept.version, sizeof(kept.version)) < 0 ||
		copy_text(json, "boot", kept.boot, sizeof(kept.boot)) < 0 ||
		kept_key(kept.pod_uid, container, right) < 0 || strcmp(right, key) ||
		!is_cache(kept.container.cache))
		return -EBADMSG;
	copy_name(json, "namespace", kept.pod_space, sizeof(kept.pod_space));
	copy_name(json, "name", kept.pod_name, sizeof(kept.pod_name));
	strcpy(kept.container.key, right);
	*ret_kept = kept;
	return 0;
}

int kept_read(const struct kept_folder *folder, const char *key, struct kept *ret_kept)
{
	char name[NAME_BYTES], text[FILE_MOST_BYTES];
	struct file_identity id;
	size_t length;
	int r;

	snprintf(name, sizeof(name), "%s" SUFFIX, key);
	r = file_read_regular(folder->folder_fd, name, O_NOFOLLOW, text, sizeof(text), &length);
	if (r == 0)
		r = file_identify_at(folder->folder_fd, name, &id);
	if (r < 0)
		return r == -ENOENT ? r : -EBADMSG;
	r = decode(text, length, key, ret_kept);
	if (r == 0)
		ret_kept->wanted_s = (int64_t)(id.changed_ns / 1000000000u);
	return r;
}

int kept_write(
	const struct kept_folder *folder, const struct kept *kept, struct folder_later *later)
{
	_cleanup_(cleanup_json) json_t *json = NULL;
	_cleanup_free_ char *text = NULL;
	char name[NAME_BYTES], share[SHARE_FILE_BYTES];
	size_t length;
	int r = share_format(&kept->container.share, share, sizeof(share), &length);

	if (r < 0)
		return r;
	json = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "format", FORMAT, "pod",
		kept->pod_uid, "namespace", kept->pod_space, "name", kept->pod_name, "container",
		strchr(kept->container.key, '_') + 1, "cache", kept->container.cache, "version",
		kept->version, "boot", kept->boot, "share", share);
	text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
	if (!text)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%s" SUFFIX, kept->container.key);
	return folder_put_later(folder->folder_fd, name, text, strlen(text), FILE_MODE, later);
}

bool kept_is_empty(const struct kept_folder *folder, const char *key)
{
	char name[NAME_BYTES];
	struct file_identity id;

	snprintf(name, sizeof(name), "%s" SUFFIX, key);
	return file_identify_at(folder->folder_fd, name, &id) == 0 && id.is_regular &&
	       id.size_bytes == 0;
}

int kept_touch(const struct kept_folder *folder, const char *key)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%s" SUFFIX, key);
	return utimensat(folder->folder_fd, name, NULL, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int kept_remove(const struct kept_folder *folder, const char *key)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%s" SUFFIX, key);
	return unlinkat(folder->folder_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

struct each {
	const struct kept_folder *folder;
	int (*what)(void *context, const char *key, const struct kept *kept);
	void *context;
};

static int take_one(void *context, int folder_fd, const char *name)
{
	const struct each *each = context;
	size_t length = strlen(name), suffix = strlen(SUFFIX);
	char key[CONTAINER_KEY_BYTES];
	struct kept kept;
	int r;

	if (name[0] == '.' || length <= suffix || length - suffix >= sizeof(key) ||
		strcmp(name + length - suffix, SUFFIX))
		return 0;
	snprintf(key, sizeof(key), "%.*s", (int)(length - suffix), name);
	r = kept_read(each->folder, key, &kept);
	return r == -ENOENT ? 0 : each->what(each->context, key, r < 0 ? NULL : &kept);
}

int kept_each(const struct kept_folder *folder,
	int (*what)(void *context, const char *key, const struct kept *kept), void *context)
{
	struct each each = {folder, what, context};

	return folder_each(folder->folder_fd, take_one, &each);
}
