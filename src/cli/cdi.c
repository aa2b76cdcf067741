/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu cdi: slices as devices that container runtimes know by name.
 *
 * The form is that of the Container Device Interface, which Docker 25, Podman 4.1 and containerd 1.7 and later versions
 * of them read.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/cdi.h"
#include "cli/command.h"
#include "cli/json.h"
#include "node/lease.h"
#include "region/region.h"

#define SLICES_MAX 64

const char help_cdi[] =
	"Prints a specification of the Container Device Interface, in which each FOLDER with a\n"
	"share file is a device `vgpu/slice=NAME`: the library, loaded before all others, the "
	"share,\n"
	"and what its lines `region` and `turns` name, where it has them. NAME is the share's\n"
	"slice, or else the folder's name.\n"
	"\n"
	"The region is made where it is not there: the container may write to that file, and make\n"
	"or remove none. `region /etc/vgpu/region` is FOLDER/region. Without that line its "
	"programs\n"
	"make a region in /tmp, and one that removes it has another quota. A region is to lie "
	"below\n"
	"a folder that its owner alone may enter (mode 0700), out of the reach of the host's "
	"users.\n"
	"\n"
	"  vgpu cdi /srv/vgpu/a /srv/vgpu/b >/etc/cdi/vgpu.new && mv /etc/cdi/vgpu.new "
	"/etc/cdi/vgpu.json\n"
	"  docker run --gpus all --device vgpu/slice=a IMAGE\n";

/* The folder that a file is in; "" where there is no path. */
static void cut_file(const char *path, char ret_folder[SHARE_PATH_BYTES])
{
	const char *end = strrchr(path, '/');

	if (end == path)
		end++;
	snprintf(ret_folder, SHARE_PATH_BYTES, "%.*s", end ? (int)(end - path) : 0, path);
}

static int need_folder(
	const char *path, const char *line, const struct cdi_slice *s, struct err *err)
{
	struct file_identity id;

	if (!*path || (file_identify_path(path, &id) == 0 && id.is_folder))
		return 0;
	return err_set(err, ENOENT,
		"%.200s: its line `%s` needs the folder %.200s, which is not there, or is none; "
		"make it first",
		s->folder, line, path);
}

/* As the interface has names; a runtime refuses a file with another one whole. */
static bool is_device_name(const char *name)
{
	size_t length = strlen(name);

	return share_name_is_valid(name) && isalnum((unsigned char)name[0]) &&
	       isalnum((unsigned char)name[length - 1]);
}

/* Where the share's region lies on the host: in a container the share's folder is CONTAINER_SHARES. */
static int place_region(struct cdi_slice *s, struct err *err)
{
	static const char shares[] = CONTAINER_SHARES "/";
	const char *name = s->share.region + strlen(shares);

	if (strncmp(s->share.region, shares, strlen(shares)) != 0) {
		snprintf(s->region, sizeof(s->region), "%s", s->share.region);
		cut_file(s->share.region, s->books);
		return need_folder(s->books, "region", s, err);
	}
	if (strchr(name, '/') || strcmp(name, "share") == 0)
		return err_set(err, EINVAL,
			"%.200s: its line `region` names %.200s; a file beside the share is "
			"right: " CONTAINER_SHARES "/region",
			s->folder, s->share.region);
	snprintf(s->region, sizeof(s->region), "%s/%s", s->folder, name);
	return 0;
}

/* A container would follow it in its own root, where it can put what it likes. */
static int need_no_link(const char *path, struct err *err)
{
	struct file_identity id;
	int r = file_identify_at(AT_FDCWD, path, &id);

	if (r < 0)
		return err_set(err, -r, "%.200s: %s", path, strerror(-r));
	return id.is_regular ? 0
			     : err_set(err, EINVAL,
				       "%.200s is no file; a link leads a container "
				       "elsewhere, so a file is right",
				       path);
}

static int read_slice(const char *folder, struct cdi_slice *ret_slice, struct err *err)
{
	char path[PLACE_BYTES + 8], text[SHARE_FILE_BYTES];
	struct cdi_slice *s = ret_slice;
	struct share_fault fault;
	const char *name;
	size_t length;
	int r;

	if (!realpath(folder, s->folder))
		return err_set(err, errno, "%.200s: %s", folder, strerror(errno));
	snprintf(path, sizeof(path), "%s/share", s->folder);
	r = need_no_link(path, err);
	if (r)
		return r;
	r = file_read_regular(AT_FDCWD, path, O_NOFOLLOW, text, sizeof(text), &length);
	if (r < 0)
		return err_set(err, -r, "%.200s: %s", path, strerror(-r));
	if (share_parse(text, length, &s->share, &fault) < 0)
		return err_set(err, EINVAL, "%.200s, line %u: %s", path, fault.line, fault.why);
	name = *s->share.slice ? s->share.slice : strrchr(s->folder, '/') + 1;
	if (!is_device_name(name))
		return err_set(err, EINVAL,
			"%.200s: '%.80s' is no device's name, which begins and ends with a letter "
			"or a digit; a line `slice NAME` in its share gives it one",
			s->folder, name);
	snprintf(s->name, sizeof(s->name), "%s", name);
	r = cdi_check_readable(s->folder, err);
	if (r == 0)
		r = cdi_check_readable(path, err);
	if (r == 0)
		r = place_region(s, err);
	return r ? r : need_folder(s->share.turns, "turns", s, err);
}

/* The first library that such a list names, as the dynamic linker reads it; what is behind a # is none. */
static void first_of(char *list, char ret_name[PLACE_BYTES])
{
	static const char separators[] = " \t\n:";

	for (char *at = strchr(list, '#'); at; at = strchr(at, '#'))
		memset(at, ' ', strcspn(at, "\n"));
	list += strspn(list, separators);
	snprintf(ret_name, PLACE_BYTES, "%.*s", (int)strcspn(list, separators), list);
}

static int explain_list(const char *list, int r, struct err *err)
{
	pid_t holder = r == -EAGAIN ? lease_holder(AT_FDCWD, list) : 0;

	return holder ? err_set(err, -r,
				"process %d has a lease on %.200s; it is to be ended first",
				(int)holder, list)
		      : err_set(err, -r, "%.200s: %s", list, region_explain(r));
}

/* What the dynamic linker of the container reads first; it has to name the library as it is mounted, before any other. */
static int check_list(const char *library, const char *list, struct err *err)
{
	char text[PLACE_BYTES] = "", first[PLACE_BYTES], right[PLACE_BYTES];
	size_t length;
	int r;

	snprintf(right, sizeof(right), CONTAINER_LIBRARY "%s", strrchr(library, '/'));
	r = file_read_regular(AT_FDCWD, list, 0, text, sizeof(text), &length);
	if (r < 0 && r != -ENOENT)
		return explain_list(list, r, err);
	first_of(text, first);
	if (r < 0 || strcmp(first, right) != 0)
		return err_set(err, ENOENT,
			"%.150s does not name the library first, as a container has it; right is: "
			"echo %.150s | install -m 644 /dev/stdin %.150s",
			list, right, list);
	return cdi_check_readable(list, err);
}

/* Its path is without links already; that of the list need not be. */
static int find_library(struct cdi_library *ret_library, struct err *err)
{
	char library[PLACE_BYTES], list[PLACE_BYTES + 16];
	char *folder = ret_library->folder;
	int r = place_find_library(library, err);

	if (r)
		return r;
	snprintf(folder, PLACE_BYTES, "%.*s", (int)(strrchr(library, '/') - library), library);
	snprintf(list, sizeof(list), "%s/ld.so.preload", folder);
	r = check_list(library, list, err);
	if (r == 0)
		r = cdi_check_readable(folder, err);
	if (r == 0)
		r = cdi_check_readable(library, err);
	if (r == 0 && !realpath(list, ret_library->list))
		r = err_set(err, errno, "%.200s: %s", list, strerror(errno));
	return r;
}

/* A mount needs the file, which a container could not make. A link in its place would give a container another file of the host. */
static int make_region(const struct cdi_slice *s, struct err *err)
{
	_cleanup_(region_close) struct region region = REGION_NULL;
	struct file_identity id;
	int r;

	if (!*s->region)
		return 0;
	r = region_open(s->region, &region);
	if (r)
		return err_set(err, r < 0 ? -r : EIO, "%.200s: make %.200s: %s; %s", s->folder,
			s->region, region_explain(r), region_remedy(r));
	if (file_identify(region.fd, &id) < 0 || id.link_count != 1)
		return err_set(err, EACCES,
			"the region %.200s has another name, by which others could reach it; right "
			"is: "
			"end the slice's programs, and rm %.200s",
			s->region, s->region);
	return cdi_check_region(s, err);
}

/* A runtime refuses a file of a later version than it knows, so this is the oldest that has all that is here. */
static const char *version_of(const struct cdi_slice *slices, int count)
{
	for (int i = 0; i < count; i++)
		if (isdigit((unsigned char)slices[i].name[0]))
			return "0.5.0";
	return "0.3.0";
}

static void put_mount(const char *from, const char *to, bool is_read_only, const char *comma)
{
	fputs("      {\"hostPath\": ", stdout);
	json_string(from);
	fputs(", \"containerPath\": ", stdout);
	json_string(to);
	printf(", \"options\": [\"rbind\", \"%s\", \"nosuid\", \"nodev\"]}%s\n",
		is_read_only ? "ro" : "rw", comma);
}

/* A folder before what is mounted in it. The region is all of its folder that the container may write to, and its programs make none. */
static void put_slice(const struct cdi_slice *s, const char *comma)
{
	bool has_region = *s->region, has_turns = *s->share.turns;

	fputs("    {\"name\": ", stdout);
	json_string(s->name);
	fputs(", \"containerEdits\": {\"mounts\": [\n", stdout);
	put_mount(s->folder, CONTAINER_SHARES, true, has_region || has_turns ? "," : "");
	if (*s->books)
		put_mount(s->books, s->books, true, ",");
	if (has_region)
		put_mount(s->region, s->share.region, false, has_turns ? "," : "");
	if (has_turns)
		put_mount(s->share.turns, s->share.turns, false, "");
	printf("    ]}}%s\n", comma);
}

int command_cdi(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_free_ struct cdi_slice *slices = calloc(SLICES_MAX, sizeof(*slices));
	struct cdi_library library;
	int count = argc - 1, r;

	if (!slices)
		return err_set(err, ENOMEM, "no memory");
	if (count < 1 || count > SLICES_MAX || *argv[1] == '-')
		return command_refuse(
			err, "cdi takes folders with a share file, up to %d", SLICES_MAX);
	r = find_library(&library, err);
	for (int i = 0; r == 0 && i < count; i++) {
		r = read_slice(argv[i + 1], &slices[i], err);
		for (int k = 0; r == 0 && k < i; k++)
			if (strcmp(slices[i].name, slices[k].name) == 0)
				r = err_set(err, EEXIST, "%.200s and %.200s are both named %s",
					slices[k].folder, slices[i].folder, slices[i].name);
	}
	if (r == 0)
		r = cdi_check(slices, count, &library, err);
	for (int i = 0; r == 0 && i < count; i++)
		r = make_region(&slices[i], err);
	if (r)
		return r;
	printf("{\n  \"cdiVersion\": \"%s\",\n  \"kind\": \"vgpu/slice\",\n  \"devices\": [\n",
		version_of(slices, count));
	for (int i = 0; i < count; i++)
		put_slice(&slices[i], i + 1 < count ? "," : "");
	fputs("  ],\n  \"containerEdits\": {\"mounts\": [\n", stdout);
	put_mount(library.folder, CONTAINER_LIBRARY, true, ",");
	put_mount(library.list, CONTAINER_PRELOAD, true, "");
	fputs("  ]}\n}\n", stdout);
	*ret_status = 0;
	return 0;
}
