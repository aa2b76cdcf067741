/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of this node that have a region. */
#include "monitor/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/listing.h"
#include "base/log.h"
#include "region/ended.h"
#include "region/region.h"

#define LOG_TOPIC LOG_REGION
#define SUFFIX	  ".cache"

static bool is_region_name(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > strlen(SUFFIX) &&
	       !strcmp(name + length - strlen(SUFFIX), SUFFIX);
}

/* The first file of that name; a container has one. */
static bool find_region(DIR *folder, char *ret_name, size_t size)
{
	struct dirent *e = readdir(folder);

	while (e && !(is_region_name(e->d_name) &&
			    (size_t)snprintf(ret_name, size, "%s", e->d_name) < size))
		e = readdir(folder);
	return e != NULL;
}

bool scan_split_name(
	const char *folder, char ret_uid[SCAN_UID_BYTES], char ret_name[SCAN_NAME_BYTES])
{
	const char *end = strchr(folder, '_');

	if (!end || end == folder || end - folder >= SCAN_UID_BYTES || !end[1] ||
		strlen(end + 1) >= SCAN_NAME_BYTES)
		return false;
	memcpy(ret_uid, folder, (size_t)(end - folder));
	ret_uid[end - folder] = '\0';
	strcpy(ret_name, end + 1);
	return true;
}

void scan_read_view(struct scan_container *c, const struct inventory *devices)
{
	char name[sizeof(c->uid) + sizeof(c->name)];
	struct site site = {.region = c->path, .name = name};
	struct err err = ERR_NULL;

	snprintf(name, sizeof(name), "%s_%s", c->uid, c->name);
	c->view = malloc(sizeof(*c->view));
	if (c->view && view_read_open(&site, c->fd, devices, c->view, &err)) {
		free(c->view);
		c->view = NULL;
	}
}

/* Its folder is root's, and no container can write there. */
static struct share *read_share(const char *shares, const char *folder)
{
	struct share *share = malloc(sizeof(*share));
	char path[SCAN_PATH_BYTES], text[SHARE_FILE_BYTES];
	struct share_fault fault;
	size_t length;

	if (share &&
		(size_t)snprintf(path, sizeof(path), "%s/%s/share", shares, folder) <
			sizeof(path) &&
		!file_read(path, text, sizeof(text), &length) &&
		!share_parse(text, length, share, &fault))
		return share;
	free(share);
	return NULL;
}

/*
 * The container can write its region, so what bears on others is the share's. And whose last process has ended works no
 * more, whatever it has left there.
 */
static void believe_share(int region_fd, const struct share *share, struct hami_figures *figures)
{
	bool is_ended;

	if (figures->recent_launches > 0 && ended_look(region_fd, &is_ended) == 0 && is_ended)
		figures->recent_launches = 0;
	figures->is_granted = true;
	figures->priority = share->priority;
	for (unsigned i = 0; i < figures->device_count; i++)
		if (!share_device(share, figures->devices[i].uuid))
			figures->devices[i].uuid[0] = '\0';
}

static int read_region(const char *containers, const char *folder, const struct inventory *devices,
	struct scan_container *c)
{
	_cleanup_(listing_close) DIR *opened = NULL;
	_cleanup_fd_ int fd = -1;
	char file[256], path[SCAN_PATH_BYTES];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", containers, folder) >= sizeof(path))
		return HAMI_E_FOREIGN;
	opened = listing_open(AT_FDCWD, path);
	if (!opened || !find_region(opened, file, sizeof(file)))
		return HAMI_E_FOREIGN;
	r = file_open_regular(dirfd(opened), file, O_RDWR | O_NOFOLLOW, &fd);
	if (!r)
		r = hami_read(fd, &c->figures);
	if (r) {
		log_warn("a container's region cannot be read", STR("container", folder),
			STR("why", r < 0 ? strerror(-r) : "it is none"));
		return r;
	}
	c->fd = take_fd(&fd);
	if ((size_t)snprintf(c->path, sizeof(c->path), "%s/%s/%s", containers, folder, file) <
			sizeof(c->path) &&
		devices)
		scan_read_view(c, devices);
	if (c->share)
		believe_share(c->fd, c->share, &c->figures);
	return 0;
}

/* One that has broken its region is a container all the same. */
static bool read_container(const char *containers, const char *shares, const char *folder,
	const struct inventory *devices, struct scan_container *c)
{
	c->fd = -1;
	if (!scan_split_name(folder, c->uid, c->name))
		return false;
	c->share = read_share(shares, folder);
	return !read_region(containers, folder, devices, c) || c->share;
}

static int add(struct scan *scan, const char *containers, const char *shares, const char *folder,
	const struct inventory *devices)
{
	struct scan_container *c;

	if (scan->count == scan->capacity) {
		size_t capacity = scan->capacity ? 2 * scan->capacity : 16;

		c = reallocarray(scan->list, capacity, sizeof(*c));
		if (!c)
			return -ENOMEM;
		scan->list = c;
		scan->capacity = capacity;
	}
	c = &scan->list[scan->count];
	memset(c, 0, sizeof(*c));
	if (read_container(containers, shares, folder, devices, c))
		scan->count++;
	return 0;
}

int scan_read(const struct scan_place *place, const struct inventory *devices, bool has_views,
	struct scan *ret_scan)
{
	struct scan scan = {.count = 0};
	char containers[SCAN_PATH_BYTES];
	DIR *folder;
	int r = 0;

	*ret_scan = scan;
	if ((size_t)snprintf(containers, sizeof(containers), "%s/containers", place->hook) >=
		sizeof(containers))
		return 0;
	folder = opendir(containers);
	if (!folder)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (e->d_name[0] != '.')
			r = add(&scan, containers, place->shares, e->d_name,
				has_views ? devices : NULL);
	closedir(folder);
	if (r)
		scan_clear(&scan);
	*ret_scan = scan;
	return r;
}

void scan_clear(struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (scan->list[i].view)
			view_clear(scan->list[i].view);
		free(scan->list[i].view);
		free(scan->list[i].share);
		if (scan->list[i].fd >= 0)
			close(scan->list[i].fd);
	}
	free(scan->list);
	*scan = (struct scan){.count = 0};
}

struct scan_container *scan_find(const struct scan *scan, const char *uid, const char *name)
{
	for (size_t i = 0; i < scan->count; i++)
		if (!strcmp(scan->list[i].uid, uid) && !strcmp(scan->list[i].name, name))
			return &scan->list[i];
	return NULL;
}
