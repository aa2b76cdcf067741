/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of this node that have a region. */
#include "monitor/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "region/region.h"

#define LOG_TOPIC  LOG_REGION
#define PATH_BYTES 4096
#define SUFFIX	   ".cache"

static bool is_region_name(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > strlen(SUFFIX) &&
	       !strcmp(name + length - strlen(SUFFIX), SUFFIX);
}

/* The first file of that name; a container has one. */
static int find_region(int folder_fd, char *ret_name, size_t size)
{
	DIR *folder;
	int copy = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = -ENOENT;

	if (copy < 0)
		return -errno;
	folder = fdopendir(copy);
	if (!folder) {
		close(copy);
		return -ENOMEM;
	}
	for (struct dirent *e = readdir(folder); e && r; e = readdir(folder))
		if (is_region_name(e->d_name) &&
			(size_t)snprintf(ret_name, size, "%s", e->d_name) < size)
			r = 0;
	closedir(folder);
	return r;
}

static bool read_name(const char *folder, struct scan_container *to)
{
	const char *end = strchr(folder, '_');

	if (!end || end == folder || (size_t)(end - folder) >= sizeof(to->uid) || !end[1] ||
		strlen(end + 1) >= sizeof(to->name))
		return false;
	memcpy(to->uid, folder, (size_t)(end - folder));
	strcpy(to->name, end + 1);
	return true;
}

/* What of it is ours beyond the part that HAMi's readers know. */
static void read_view(const char *path, const struct scan_container *c,
	const struct inventory *devices, struct view *ret_view, bool *ret_is_ours)
{
	char name[sizeof(c->uid) + sizeof(c->name)];
	struct site site = {.region = (char *)path, .name = name};
	struct err err = ERR_NULL;

	snprintf(name, sizeof(name), "%s_%s", c->uid, c->name);
	*ret_is_ours = view_read(&site, devices, ret_view, &err) == 0;
}

static int read_container(const char *containers, const char *folder,
	const struct inventory *devices, struct scan_container *c)
{
	_cleanup_fd_ int folder_fd = -1, fd = -1;
	char file[256], path[PATH_BYTES];
	int r;

	if (!read_name(folder, c) ||
		(size_t)snprintf(path, sizeof(path), "%s/%s", containers, folder) >= sizeof(path))
		return HAMI_E_FOREIGN;
	folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd < 0 || find_region(folder_fd, file, sizeof(file)))
		return HAMI_E_FOREIGN;
	r = file_open_regular(folder_fd, file, O_RDWR | O_NOFOLLOW, &fd);
	if (!r)
		r = hami_read(fd, &c->figures);
	if (r) {
		log_warn("a container's region cannot be read", STR("container", folder),
			STR("why", r < 0 ? strerror(-r) : "it is none"));
		return r;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s/%s/%s", containers, folder, file) <
		sizeof(path))
		read_view(path, c, devices, &c->view, &c->is_ours);
	c->fd = take_fd(&fd);
	return 0;
}

static int add(struct scan *scan, const char *containers, const char *folder,
	const struct inventory *devices)
{
	struct scan_container *list =
		reallocarray(scan->list, scan->count + 1, sizeof(*scan->list));
	struct scan_container *c;

	if (!list)
		return -ENOMEM;
	scan->list = list;
	c = &list[scan->count];
	memset(c, 0, sizeof(*c));
	if (read_container(containers, folder, devices, c) == 0)
		scan->count++;
	return 0;
}

int scan_read(const char *hook, const struct inventory *devices, struct scan *ret_scan)
{
	struct scan scan = {.count = 0};
	char containers[PATH_BYTES];
	DIR *folder;
	int r = 0;

	*ret_scan = scan;
	if ((size_t)snprintf(containers, sizeof(containers), "%s/containers", hook) >=
		sizeof(containers))
		return 0;
	folder = opendir(containers);
	if (!folder)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (e->d_name[0] != '.')
			r = add(&scan, containers, e->d_name, devices);
	closedir(folder);
	if (r)
		scan_clear(&scan);
	*ret_scan = scan;
	return r;
}

void scan_clear(struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (scan->list[i].is_ours)
			view_clear(&scan->list[i].view);
		close(scan->list[i].fd);
	}
	free(scan->list);
	*scan = (struct scan){.count = 0};
}
