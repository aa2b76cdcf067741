/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant library on the host. */
#include "plugin/host/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "node/folder.h"

#define LOG_TOPIC	   LOG_KUBELET

#define FOLDER_MODE	   0755
#define LIBRARY_MODE	   0755
#define PRELOAD_MODE	   0644
#define LIBRARY_MOST_BYTES (64u << 20)
#define PREFIX		   "libvgpu.so."

void library_path(const char *hook, const char *version, char ret_path[CONTAINER_PATH_BYTES])
{
	snprintf(ret_path, CONTAINER_PATH_BYTES, "%s/" PREFIX "%s", hook, version);
}

/* Of each version that is ours there is an empty file in STATE/libraries: others may have put theirs there. */
static int open_marks(const char *state, int *ret_fd, struct err *err)
{
	char path[CONTAINER_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/libraries", state);
	return folder_make(path, FOLDER_MODE, ret_fd, err);
}

static int put_library(int hook_fd, const char *version, const char *content, size_t bytes)
{
	char name[KEPT_VERSION_BYTES + sizeof(PREFIX)];
	struct file_identity id;

	snprintf(name, sizeof(name), PREFIX "%s", version);
	if (folder_has(hook_fd, name, content, bytes, LIBRARY_MODE))
		return 0;
	if (file_identify_at(hook_fd, name, &id) == 0)
		log_warn("the library of this version has another content on the host; the image's "
			 "takes its "
			 "place for containers that start from now on",
			STR("version", version));
	return folder_put(hook_fd, name, content, bytes, LIBRARY_MODE, FOLDER_SYNC);
}

int library_install(const char *state, const char *hook, const char *version, const char *source,
	struct err *err)
{
	_cleanup_free_ char *content = malloc(LIBRARY_MOST_BYTES);
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL; /* for its lock */
	_cleanup_fd_ int marks_fd = -1;
	_cleanup_fd_ int hook_fd = -1;
	char preload[CONTAINER_PATH_BYTES];
	size_t bytes;
	int r;

	if (!content)
		return err_set(err, ENOMEM, "no memory");
	if (!*version || strlen(version) >= KEPT_VERSION_BYTES || strchr(version, '/'))
		return err_set(err, EINVAL, "'%.80s' is no version", version);
	r = file_read_regular(AT_FDCWD, source, 0, content, LIBRARY_MOST_BYTES, &bytes);
	if (r < 0 || bytes < 4 || memcmp(content, "\177ELF", 4))
		return err_set(err, r < 0 ? -r : ENOEXEC, "%.300s is no library: %s", source,
			strerror(r < 0 ? -r : ENOEXEC));
	r = kept_open(state, &folder, err);
	if (r == 0)
		r = open_marks(state, &marks_fd, err);
	if (r == 0)
		r = folder_make(hook, FOLDER_MODE, &hook_fd, err);
	if (r < 0)
		return r;
	r = folder_put(marks_fd, version, "", 0, PRELOAD_MODE, FOLDER_SYNC);
	FAULT("library: marked");
	if (r == 0)
		r = put_library(hook_fd, version, content, bytes);
	FAULT("library: installed");
	snprintf(preload, sizeof(preload), "%s/libvgpu.so\n", hook);
	if (r == 0)
		r = folder_put(hook_fd, "ld.so.preload", preload, strlen(preload), PRELOAD_MODE,
			FOLDER_SYNC);
	return r < 0 ? err_set(err, -r, "install the library in %.300s: %s", hook, strerror(-r))
		     : 0;
}

static int check_file(const char *path, struct err *err)
{
	struct file_identity id;
	int r = file_identify_at(AT_FDCWD, path, &id);

	if (r < 0)
		return err_set(err, -r, "%.300s: %s; the plugin installs it when it starts", path,
			strerror(-r));
	if (!id.is_regular || id.owner != geteuid() || (id.mode & 022) || id.size_bytes == 0)
		return err_set(err, EPERM,
			"%.300s is no file that the plugin alone can write to; it is made right "
			"when the "
			"plugin starts",
			path);
	return 0;
}

int library_check(const char *hook, const char *version, struct err *err)
{
	char path[CONTAINER_PATH_BYTES];
	int r;

	library_path(hook, version, path);
	r = check_file(path, err);
	snprintf(path, sizeof(path), "%s/ld.so.preload", hook);
	return r < 0 ? r : check_file(path, err);
}

struct collect {
	const struct kept_folder *folder;
	const char *version;
	int hook_fd;
};

static int is_of(void *context, const char *key, const struct kept *kept)
{
	/* nobody knows which one a container has whose JSON is broken */
	return !kept || !strcmp(kept->version, context);
}

static int collect_one(void *context, int marks_fd, const char *version)
{
	const struct collect *c = context;
	char name[KEPT_VERSION_BYTES + sizeof(PREFIX)], unfinished[sizeof(name) + 8];
	int r;

	if (version[0] == '.' || strlen(version) >= KEPT_VERSION_BYTES ||
		!strcmp(version, c->version))
		return 0;
	r = kept_each(c->folder, is_of, (void *)version);
	if (r)
		return r < 0 ? r : 0;
	snprintf(name, sizeof(name), PREFIX "%s", version);
	snprintf(unfinished, sizeof(unfinished), ".%s.new", name); /* folder_put()'s */
	if (unlinkat(c->hook_fd, unfinished, 0) < 0 && errno != ENOENT)
		return -errno;
	if (unlinkat(c->hook_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	FAULT("library: removed");
	return unlinkat(marks_fd, version, 0) < 0 ? -errno : 0;
}

int library_collect(const char *state, const char *hook, const char *version,
	const struct kept_folder *folder, struct err *err)
{
	_cleanup_fd_ int marks_fd = -1;
	_cleanup_fd_ int hook_fd = -1;
	struct collect collect = {.folder = folder, .version = version};
	int r = open_marks(state, &marks_fd, err);

	if (r == 0)
		r = folder_make(hook, FOLDER_MODE, &hook_fd, err);
	if (r < 0)
		return r;
	collect.hook_fd = hook_fd;
	r = folder_sweep(marks_fd);
	if (r == 0)
		r = folder_each(marks_fd, collect_one, &collect);
	return r < 0 ? err_set(err, -r, "remove old libraries in %.300s: %s", hook, strerror(-r))
		     : 0;
}
