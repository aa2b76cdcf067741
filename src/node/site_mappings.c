/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions that processes have mapped.
 *
 * A region has no registry: it is a file, in whatever mount namespace its processes live.
 */
#include "node/site_mappings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "node/far.h"
#include "node/look.h"
#include "node/mapped.h"
#include "node/mappings.h"
#include "node/site_label.h"
#include "node/site_list.h"
#include "node/user.h"
#include "policy/share.h"
#include "region/layout.h"
#include "region/process.h"

/* Of the lists of all processes of a user: 500 processes with a thousand mappings each. */
#define LINES_OF_USER	 524288
#define LINES_OF_OPENING 64 /* to open one takes as long as to read so many */

/* By the kernel's link alone, or, for one's own process where one may not follow that, by its path, or NULL. */
static int identify_mapped(
	const char *link, pid_t pid, const char *path, struct file_identity *ret_identity)
{
	int r = mapped_identify(link, ret_identity);

	if ((r != -EPERM && r != -EACCES) || !path)
		return r;
	r = far_identify(pid, path, ret_identity);
	return r < 0 || ret_identity->is_regular ? r : -EBADF;
}

/* Whether it stands where a container has its region (docs/containers.md), and can have nothing else. */
static bool has_regions_place(const struct mapping *m)
{
	static const char folder[] = SHARE_SYSTEM_FOLDER "/";

	return strncmp(m->path, folder, sizeof(folder) - 1) == 0;
}

/* Whether the mapping ends where a region's does, which few other files have. */
static bool ends_as_region(const struct mapping *m)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = sizeof(struct region_file);

	return m->offset + (m->end - m->start) == (bytes + page - 1) / page * page;
}

/*
 * Whether it may be a region's mapping, or a part of one: mlock(), mprotect(), madvise() and munmap() of a page leave several. Whose program means to
 * hide its slice protects all of it: of what is not written to only what looks like a region is opened, as honest programs read many files so.
 */
static bool may_be_region(const struct mapping *m)
{
	if (m->path[0] != '/' || !m->is_shared || !m->inode ||
		m->offset >= sizeof(struct region_file))
		return false;
	return m->is_shared_and_written || has_regions_place(m) || ends_as_region(m);
}

/* Whether it is a region, or was one. What is of another length is another program's file, but for where only a region can be. */
static bool is_likely(const struct mapping *m, const struct file_identity *id)
{
	return has_regions_place(m) || id->size_bytes == sizeof(struct region_file);
}

static bool is_text(const char *text)
{
	uint32_t character;
	unsigned length = 1;

	while (*text && (length = utf8_read(text, &character)) != 0)
		text += length;
	return length != 0;
}

/*
 * It has gone, or stands there in another way than it is: what is no single line (proc(5)). And what is no text, of which metrics would show
 * several as one.
 */
static bool has_no_path(const struct mapping *m)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(m->path);

	return (length > sizeof(deleted) &&
		       !strcmp(m->path + length - (sizeof(deleted) - 1), deleted)) ||
	       strstr(m->path, "\\012") || !is_text(m->path);
}

/* Files that are none, as a device's, of which a program with a context has dozens of mappings. */
#define OTHERS 8
struct others {
	struct {
		uint64_t inode;
		unsigned major, minor;
	} list[OTHERS];
	unsigned count;
};

static bool is_other(const struct others *o, const struct mapping *m)
{
	for (unsigned i = 0; i < min_u64(o->count, OTHERS); i++)
		if (o->list[i].inode == m->inode && o->list[i].major == m->device_major &&
			o->list[i].minor == m->device_minor)
			return true;
	return false;
}

static void note_other(struct others *o, const struct mapping *m)
{
	unsigned at = o->count++ % OTHERS;

	o->list[at].inode = m->inode;
	o->list[at].major = m->device_major;
	o->list[at].minor = m->device_minor;
}

/* A process whose mappings are looked at. */
struct mapper {
	pid_t pid; /* by which /proc shows what it has */
	struct others others;
	uid_t user;
	bool sees_ours; /* its paths are ours: nothing of its own is mounted or is its root */
	struct account *account; /* NULL: without an end */
};

static bool sees_ours(pid_t pid)
{
	char path[64], root[4];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	length = readlink(path, root, sizeof(root));
	return length == 1 && root[0] == '/' && !user_mounts_of(pid);
}

/* Anybody may map what he may write to, before or after its owner does. In a container without root the owner is a subordinate number. */
static bool is_owners(const struct mapper *by, const struct file_identity *id)
{
	uid_t user;

	return by->user == id->owner || (user_of_process(by->pid, &user) && user == id->owner);
}

/* Whether it is the mapping by which the region is to be known. */
static bool is_better(
	const struct site *known, const struct mapper *by, const struct file_identity *id)
{
	return known->is_guess && !known->is_owners && is_owners(by, id);
}

/* The one that was found last, in the place of that one. */
static void put_last_at(struct sites *s, size_t at)
{
	site_list_clear(&s->list[at]);
	s->list[at] = s->list[--s->count];
}

/* Whether another region of the user's is known by it: one may be mounted over the other. */
static bool is_taken(const struct sites *s, size_t but, uid_t user, const char *region)
{
	for (size_t i = 0; i < s->count; i++)
		if (i != but && s->list[i].owner == user && strcmp(s->list[i].region, region) == 0)
			return true;
	return false;
}

static void label(const struct sites *s, size_t known, struct mapper *by, const struct mapping *m,
	const struct file_identity *id, struct site_label *ret_label)
{
	const struct there there = {by->pid, has_no_path(m) ? NULL : m->path, .identity = id};
	unsigned free_lines = 0;
	unsigned *lines = by->account ? &by->account->lines : &free_lines;

	if (!there.path || strlen(there.path) >= sizeof(ret_label->region)) {
		site_label_by_file(&there, ret_label);
		return;
	}
	/* The kernel shows the path of a file of other mounts, which a descriptor brought, as if it were of its own. */
	if (by->sees_ours && here_is_at(there.path, id)) {
		snprintf(ret_label->region, sizeof(ret_label->region), "%s", there.path);
		site_list_name(there.path, NULL, ret_label->name, sizeof(ret_label->name));
	} else {
		site_label_make(&there, lines, by->account ? LINES_OF_USER : UINT_MAX, ret_label);
	}
	if (is_taken(s, known, by->user, ret_label->region))
		site_label_by_file(&there, ret_label);
}

/* Its path as one's own process means it; NULL: there is none, or the process is another's. */
static const char *own_path_of(const struct mapper *by, const struct mapping *m)
{
	return by->user == geteuid() && !has_no_path(m) ? m->path : NULL;
}

/* Counts one more of the user's; false where that is too many. */
static bool may_map(struct mapper *by)
{
	if (!by->account)
		return true;
	if (by->account->mapped == SITES_OF_USER) {
		by->account->left_out++;
		return false;
	}
	by->account->mapped++;
	return true;
}

static int append(struct sites *s, const struct mapper *by, const struct mapping *m,
	const struct file_identity *id, const char *link, const char *own_path,
	const struct site_label *label)
{
	struct site *site = site_list_append(s, label->name, NULL, label->region);

	if (!site)
		return -ENOMEM;
	site->mapped = strdup(link);
	site->own_path = own_path ? strdup(own_path) : NULL;
	site->pid = by->pid;
	site->is_guess = true;
	site->is_likely = is_likely(m, id);
	site->owner = by->user;
	site->is_owners = is_owners(by, id);
	site->device = id->device;
	site->inode = id->inode;
	return site->mapped && (!own_path || site->own_path) ? 0 : -ENOMEM;
}

static int add_mapping(struct sites *s, struct mapper *by, const struct mapping *m)
{
	const char *own_path = own_path_of(by, m);
	char link[MAPPED_PATH_BYTES];
	struct site_label its;
	struct file_identity id;
	size_t known;
	int r;

	if (is_other(&by->others, m))
		return 0;
	if (by->account)
		by->account->lines += LINES_OF_OPENING;
	mapped_path(by->pid, m, link);
	r = identify_mapped(link, by->pid, own_path, &id);
	if (r == -EMEDIUMTYPE)
		s->strange_count++;
	if (r == -EBADF)
		note_other(&by->others, m);
	if (r < 0 || (id.size_bytes < sizeof(struct region_file) && !is_likely(m, &id)))
		return 0;
	/* It is of his slice who could write to it before. */
	if (!m->is_shared_and_written && !is_owners(by, &id) && !(id.mode & 002))
		return 0;
	known = site_list_find(s, &id);
	if (known < s->count && !is_better(&s->list[known], by, &id))
		return 0;
	if (!may_map(by))
		return 0;
	label(s, known, by, m, &id, &its);
	r = append(s, by, m, &id, link, own_path, &its);
	if (r == 0 && known < s->count - 1)
		put_last_at(s, known);
	return r;
}

static int add_mappings_of(struct sites *s, pid_t pid)
{
	_cleanup_(mappings_close) struct mappings all = MAPPINGS_NULL;
	/* For all that is read of it: of a first thread that has ended nothing tells what it had. */
	struct mapper by = {.pid = pid};
	struct mapping m;
	int r;

	if (!look_is_allowed(pid))
		return 0;
	by.pid = process_find_thread(pid);
	r = account_enter(&s->accounts, by.pid, &by.user, &by.account);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (mappings_open(by.pid, &all) < 0)
		return 0;
	by.sees_ours = sees_ours(by.pid);
	while (r == 0 && mappings_next(&all, &m)) {
		if (by.account && by.account->lines++ >= LINES_OF_USER) {
			by.account->has_more_lines = true;
			break;
		}
		if (may_be_region(&m))
			r = add_mapping(s, &by, &m);
	}
	return r;
}

int site_mappings_add(struct sites *s)
{
	DIR *folder = opendir("/proc");
	int r = 0;

	if (!folder)
		return 0;
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (isdigit((unsigned char)e->d_name[0]))
			r = add_mappings_of(s, (pid_t)atoi(e->d_name));
	closedir(folder);
	return r;
}
