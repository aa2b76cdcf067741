/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu cdi: slices as devices that container runtimes know by name.
 *
 * The form is that of the Container Device Interface, which Docker 25, Podman 4.1 and containerd 1.7 and later versions
 * of them read.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/listing.h"
#include "cli/command.h"
#include "cli/json.h"
#include "node/place.h"
#include "policy/share.h"
#include "region/region.h"

#define SLICES_MAX 64
/*
 * In a container all that limits are made of is a mount in /etc, which is the image's own folder: a mount can neither be renamed nor
 * removed, nor can, on an overlay, a folder of the image. One that the runtime makes above a mount, as the image lacks it, can be renamed
 * with the mount in it, and the dynamic linker goes past a library that is not there (docs/decisions/0040).
 */
#define CONTAINER_SHARES  "/etc/vgpu"
#define CONTAINER_LIBRARY "/etc/vgpu-lib"
#define CONTAINER_PRELOAD "/etc/ld.so.preload"

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
	"make a region in /tmp, and one that removes it has another quota.\n"
	"\n"
	"  vgpu cdi /srv/vgpu/a /srv/vgpu/b >/etc/cdi/vgpu.json\n"
	"  docker run --gpus all --device vgpu/slice=a IMAGE\n";

struct cdi_slice {
	char folder[PLACE_BYTES], name[SHARE_NAME_BYTES];
	char region[PLACE_BYTES + SHARE_PATH_BYTES]; /* the file on the host; "": none */
	char books[SHARE_PATH_BYTES]; /* the folder that it is in; "": that of the share */
	struct share share;
};

/* The folder that a file is in; "" where there is no path. */
static void cut_file(const char *path, char ret_folder[SHARE_PATH_BYTES])
{
	const char *end = strrchr(path, '/');

	if (end == path)
		end++;
	snprintf(ret_folder, SHARE_PATH_BYTES, "%.*s", end ? (int)(end - path) : 0, path);
}

static bool is_strangers(const struct file_identity *folder)
{
	return folder->owner != 0 && folder->owner != geteuid();
}

/*
 * Programs of a container are not only root's, and the dynamic linker goes without a word past a list that they may not read, as it
 * does past the library: they would run without limits. What a umask has taken is to be seen before.
 */
static int need_readable(const char *path, struct err *err)
{
	struct file_identity id;
	bool is_folder;
	int r = file_identify_path(path, &id);

	if (r < 0)
		return err_set(err, -r, "%.200s: %s", path, strerror(-r));
	is_folder = id.is_folder;
	if (is_strangers(&id) || (id.mode & 022))
		return err_set(err, EACCES,
			"%.200s is not root's and yours alone to write to, so others could change "
			"what binds a container; right is: chown root %.200s, and chmod go-w",
			path, path);
	if ((id.mode & 0444) == 0444 && (!is_folder || (id.mode & 0111) == 0111))
		return 0;
	return err_set(err, EACCES,
		"%.200s has the mode %04o, so programs of a container that are not root's could "
		"not "
		"read it; right is: chmod %s %.200s",
		path, id.mode & 07777, is_folder ? "a+rx" : "a+r", path);
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
	r = file_read_regular(AT_FDCWD, path, 0, text, sizeof(text), &length);
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
	r = need_readable(s->folder, err);
	if (r == 0)
		r = need_readable(path, err);
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

/* What the dynamic linker of the container reads first; it has to name the library as it is mounted, before any other. */
static int find_preload(
	const char *library, const char *folder, char ret_path[PLACE_BYTES + 16], struct err *err)
{
	char text[PLACE_BYTES] = "", first[PLACE_BYTES], right[PLACE_BYTES];
	size_t length;
	int r;

	snprintf(ret_path, PLACE_BYTES + 16, "%s/ld.so.preload", folder);
	snprintf(right, sizeof(right), CONTAINER_LIBRARY "%s", strrchr(library, '/'));
	r = file_read_regular(AT_FDCWD, ret_path, 0, text, sizeof(text), &length);
	first_of(text, first);
	if (r < 0 || strcmp(first, right) != 0)
		return err_set(err, ENOENT,
			"%.150s does not name the library first, as a container has it; right is: "
			"echo %.150s | install -m 644 /dev/stdin %.150s",
			ret_path, right, ret_path);
	r = need_readable(folder, err);
	if (r == 0)
		r = need_readable(library, err);
	return r ? r : need_readable(ret_path, err);
}

/* Whether the path is the folder's, or lies below it. */
static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 &&
	       (!path[length] || path[length] == '/' || !strcmp(folder, "/"));
}

/* The same by what the folders are, whatever their names: another mount of it counts, too. */
static bool lies_in(const char *path, const struct file_identity *folder)
{
	char above[PLACE_BYTES];
	struct file_identity id;

	snprintf(above, sizeof(above), "%s", path);
	for (char *end = above + strlen(above); end > above; end = strrchr(above, '/')) {
		*end = '\0';
		if (file_identify_path(*above ? above : "/", &id) == 0 &&
			id.inode == folder->inode && id.device == folder->device)
			return true;
	}
	return false;
}

/* Whether others may exchange the inner one in it: with the sticky bit its owner still may. */
static bool is_anybodys(const struct file_identity *folder, const struct file_identity *inner)
{
	bool is_shared = folder->mode & 022, is_sticky = folder->mode & 01000;

	return is_strangers(folder) || (is_shared && (!is_sticky || is_strangers(inner)));
}

/* The nearest folder above it in which others may put something else in its place; false where there is none. */
static bool find_anybodys(const char *path, char ret_above[PLACE_BYTES])
{
	struct file_identity above, inner;

	snprintf(ret_above, PLACE_BYTES, "%s", path);
	if (file_identify_path(path, &inner) < 0)
		return true;
	for (char *end = strrchr(ret_above, '/'); end; end = strrchr(ret_above, '/')) {
		end[end == ret_above] = '\0';
		if (file_identify_path(ret_above, &above) < 0 || is_anybodys(&above, &inner))
			return true;
		inner = above;
		if (end == ret_above)
			break;
	}
	return false;
}

/* True where nobody can tell. */
static bool has_share(const char *folder)
{
	_cleanup_(listing_close) DIR *entries = listing_open(AT_FDCWD, folder);
	char path[PLACE_BYTES + 300];
	struct file_identity id;

	snprintf(path, sizeof(path), "%s/share", folder);
	if (!entries || (file_identify_at(AT_FDCWD, path, &id) == 0 && id.is_regular))
		return true;
	for (struct dirent *e = readdir(entries); e; e = readdir(entries)) {
		snprintf(path, sizeof(path), "%s/%s/share", folder, e->d_name);
		if (strcmp(e->d_name, "..") && file_identify_at(AT_FDCWD, path, &id) == 0 &&
			id.is_regular)
			return true;
	}
	return false;
}

/* The folder of another line that lies below this one: what may write here can put a link in its place. */
static const char *find_nested(const char *folder, const struct cdi_slice *slices, int count)
{
	for (int i = 0; i < count; i++) {
		const char *others[] = {slices[i].books, slices[i].share.turns};

		for (size_t k = 0; k < ARRAY_SIZE(others); k++)
			if (*others[k] && strcmp(others[k], folder) && is_below(others[k], folder))
				return others[k];
	}
	return NULL;
}

/*
 * A container must not have what its own or another one's limits are made of a second time, where it may write to that, nor be able
 * to write where something is mounted from.
 */
static int check_given(const char *folder, const char *line, const struct cdi_slice *slices,
	int count, const char *library, struct err *err)
{
	const char *victims[] = {library, CONTAINER_SHARES, CONTAINER_LIBRARY, CONTAINER_PRELOAD,
		"/run/vgpu", "/etc/cdi"};
	char whole[PLACE_BYTES], above[PLACE_BYTES];
	const char *victim = NULL;
	struct file_identity id;

	if (!*folder)
		return 0;
	if (!realpath(folder, whole) || file_identify_path(whole, &id) < 0)
		return err_set(err, errno, "%.200s: %s", folder, strerror(errno));
	for (size_t i = 0; i < ARRAY_SIZE(victims) && !victim; i++)
		if (is_below(victims[i], folder) || is_below(victims[i], whole))
			victim = victims[i];
	for (int i = 0; i < count && !victim; i++)
		if (lies_in(slices[i].folder, &id))
			victim = slices[i].folder;
	if (!victim && strcmp(folder, whole) == 0)
		victim = find_nested(whole, slices, count);
	if (victim)
		return err_set(err, EINVAL,
			"the line `%s` would give a container all of %.150s, in which "
			"%.150s is; a folder of its own is right",
			line, folder, victim);
	if (strcmp(folder, whole) != 0)
		return err_set(err, EINVAL,
			"the line `%s` names %.150s, which is %.150s; a container could have "
			"another one by it, so that name is right",
			line, folder, whole);
	if (has_share(whole))
		return err_set(err, EINVAL,
			"the line `%s` would give a container a share, in or below %.150s; "
			"a folder of its own is right",
			line, folder);
	if (find_anybodys(whole, above))
		return err_set(err, EINVAL,
			"the line `%s` names %.150s, in whose place others may put something else, "
			"as %.150s is not root's and yours alone",
			line, folder, above);
	return 0;
}

static int check_all_given(
	const struct cdi_slice *slices, int count, const char *library, struct err *err)
{
	int r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		r = check_given(slices[i].books, "region", slices, count, library, err);
		if (r == 0)
			r = check_given(
				slices[i].share.turns, "turns", slices, count, library, err);
	}
	return r;
}

/*
 * A mount needs the file, which a container could not make. It is made where nobody else may put a link in its place, by which a
 * container would have another file of the host.
 */
static int make_region(const struct cdi_slice *s, struct err *err)
{
	_cleanup_(region_close) struct region region = REGION_NULL;
	char above[PLACE_BYTES];
	int r;

	if (!*s->region)
		return 0;
	r = region_open(s->region, &region);
	if (r)
		return err_set(err, r < 0 ? -r : EIO, "%.200s: make %.200s: %s; %s", s->folder,
			s->region, region_explain(r), region_remedy(r));
	if (find_anybodys(s->region, above))
		return err_set(err, EINVAL,
			"the line `region` names %.150s, in whose place others may put something "
			"else, as %.150s is not root's and yours alone",
			s->region, above);
	return 0;
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
	char library[PLACE_BYTES], folder[PLACE_BYTES], preload[PLACE_BYTES + 16];
	int count = argc - 1, r;

	if (!slices)
		return err_set(err, ENOMEM, "no memory");
	if (count < 1 || count > SLICES_MAX || *argv[1] == '-')
		return command_refuse(
			err, "cdi takes folders with a share file, up to %d", SLICES_MAX);
	r = place_find_library(library, err);
	if (r == 0) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(library, '/') - library),
			library);
		r = find_preload(library, folder, preload, err);
	}
	for (int i = 0; r == 0 && i < count; i++) {
		r = read_slice(argv[i + 1], &slices[i], err);
		for (int k = 0; r == 0 && k < i; k++)
			if (strcmp(slices[i].name, slices[k].name) == 0)
				r = err_set(err, EEXIST, "%.200s and %.200s are both named %s",
					slices[k].folder, slices[i].folder, slices[i].name);
	}
	if (r == 0)
		r = check_all_given(slices, count, library, err);
	for (int i = 0; r == 0 && i < count; i++)
		r = make_region(&slices[i], err);
	if (r)
		return r;
	printf("{\n  \"cdiVersion\": \"%s\",\n  \"kind\": \"vgpu/slice\",\n  \"devices\": [\n",
		version_of(slices, count));
	for (int i = 0; i < count; i++)
		put_slice(&slices[i], i + 1 < count ? "," : "");
	fputs("  ],\n  \"containerEdits\": {\"mounts\": [\n", stdout);
	put_mount(folder, CONTAINER_LIBRARY, true, ",");
	put_mount(preload, CONTAINER_PRELOAD, true, "");
	fputs("  ]}\n}\n", stdout);
	*ret_status = 0;
	return 0;
}
