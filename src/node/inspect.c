/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is to live under a quota, as /proc tells. */
#include "node/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "node/far.h"
#include "node/look.h"
#include "node/mappings.h"
#include "node/user.h"
#include "region/filesystem.h"
#include "region/process.h"
#include "region/region.h"

#define LIBRARY "libvgpu.so"
#define DRIVER	"libcuda.so"
/* The kernel gives no program more (fs/exec.c), but a process may say that its environment is all of its memory. */
#define ENVIRONMENT_BYTES (UINT64_C(6) << 20)
#define AUXV_BYTES	  4096

/* Ends with an empty string, whatever the process has made of it. */
static int read_environment(int pid, char **ret_text)
{
	size_t length;

	return look_read(pid, "environ", ENVIRONMENT_BYTES, ret_text, &length);
}

/* As the kernel told the dynamic linker (tenant/slice/environment.h). What cannot be read counts as none of these. */
static bool has_rights_of_file(int pid)
{
	_cleanup_free_ char *text = NULL;
	unsigned long words[2];
	size_t length;

	if (look_read(pid, "auxv", AUXV_BYTES, &text, &length) < 0)
		return false;
	for (size_t at = 0; at + sizeof(words) <= length; at += sizeof(words)) {
		memcpy(words, text + at, sizeof(words));
		if (words[0] == AT_SECURE)
			return words[1];
	}
	return false;
}

/* The context is the zero-ended strings of an environment. */
static const char *look_up(void *context, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = context; at && *at; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

const char *inspect_option(const struct inspection *inspection, const char *name)
{
	const char *value = look_up(inspection->environment, name);

	return value && *value ? value : NULL;
}

/*
 * Takes over the path of a mapping, where it is the library's and none was seen before. What nobody can run is a file of that
 * name, and no library.
 */
static void take_path(const struct mapping *m, const char *library, char *ret_path, size_t size)
{
	const char *slash = m->path[0] == '/' ? strrchr(m->path, '/') : NULL;

	if (slash && m->is_run && !*ret_path && strncmp(slash + 1, library, strlen(library)) == 0)
		snprintf(ret_path, size, "%s", m->path);
}

static bool find_libraries(int pid, struct inspection *i)
{
	struct mappings all;
	struct mapping m;
	int r = mappings_open(pid, &all);

	while (r == 0 && mappings_next(&all, &m)) {
		take_path(&m, LIBRARY, i->library, sizeof(i->library));
		take_path(&m, DRIVER, i->driver, sizeof(i->driver));
	}
	mappings_close(&all);
	return r == 0;
}

/* Whether the list of the dynamic linker, as the process sees it, names that. */
static bool is_listed(int pid, const char *name)
{
	_cleanup_(far_close) struct far far = FAR_NULL;
	char text[4096];
	size_t length;

	return far_open(pid, SHARE_LIBRARY_LIST, &far) == 0 &&
	       file_read_regular(AT_FDCWD, far.path, 0, text, sizeof(text), &length) == 0 &&
	       strstr(text, name);
}

/* The reason why the dynamic linker put the library before what the program names. */
static const char *find_preload(int pid, char *environment)
{
	const char *variable = look_up(environment, "LD_PRELOAD");

	if (variable && strstr(variable, LIBRARY))
		return "LD_PRELOAD";
	return is_listed(pid, LIBRARY) ? SHARE_LIBRARY_LIST : NULL;
}

/* Names no others: of most libraries nobody can tell from outside what they have. */
static void find_before(const char *variable, char *ret_word, size_t size)
{
	static const char *const names[] = {"libc.so", "libdl.so", DRIVER, "libnvidia-ml.so"};
	size_t length;

	for (const char *at = variable; at && *at; at += length) {
		const char *name = at += strspn(at, " :");

		length = strcspn(at, " :");
		for (size_t i = 0; i < length; i++)
			if (at[i] == '/')
				name = at + i + 1;
		if (strncmp(name, LIBRARY, strlen(LIBRARY)) == 0)
			return;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (strncmp(name, names[i], strlen(names[i])) == 0) {
				snprintf(ret_word, size, "%.*s", (int)min_u64(length, size), at);
				return;
			}
	}
}

/* Whether the path is a mount of its own for the process: field 5 of a line of mountinfo. */
static bool is_mounted(int pid, const char *path)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_file_ FILE *mounts = NULL;
	size_t capacity = 0;
	char name[64], at[4096];

	snprintf(name, sizeof(name), "/proc/%d/mountinfo", pid);
	mounts = fopen(name, "re");
	while (mounts && getline(&line, &capacity, mounts) > 0)
		if (sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 && strcmp(at, path) == 0)
			return true;
	return false;
}

/* The path is the process's own: what it names may be something else for us. */
static struct inspected_share read_share(int pid, const char *path)
{
	struct inspected_share seen = {.path = path, .is_mount = is_mounted(pid, path)};
	_cleanup_(far_close) struct far far = FAR_NULL;
	char text[SHARE_FILE_BYTES];
	struct share_fault fault;
	size_t length;
	int r = far_open(pid, path, &far);

	if (r == 0)
		r = file_read_regular(AT_FDCWD, far.path, 0, text, sizeof(text), &length);
	if (r == 0 && share_parse(text, length, &seen.share, &fault) == 0)
		return seen;
	seen.why = r == -EBADF ? "it is no regular file" : r < 0 ? far_explain(r) : fault.why;
	seen.line = r < 0 ? 0 : fault.line;
	return seen;
}

/* By the rule of the library (tenant/slice/bound.h). */
static bool is_meant(int pid)
{
	return is_mounted(pid, SHARE_SYSTEM_FOLDER) ||
	       (is_mounted(pid, SHARE_LIBRARY_LIST) && is_listed(pid, SHARE_SYSTEM_LIBRARY "/"));
}

static void read_shares(int pid, struct inspection *i)
{
	_cleanup_(far_close) struct far far = FAR_NULL;

	if (far_open(pid, SHARE_SYSTEM_PATH, &far) != -ENOENT)
		i->shares[0] = read_share(pid, SHARE_SYSTEM_PATH);
	else if (is_meant(pid))
		i->shares[0] = (struct inspected_share){.path = SHARE_SYSTEM_PATH,
			.why = "it is missing, so all memory is refused: its folder, or the list "
			       "that loads the library, is a mount, as a container has them"};
	if (i->options.share_path)
		i->shares[1] = read_share(pid, i->options.share_path);
}

/* The file, which may be a mount of its own, or the nearest folder of its path that is there. -EMEDIUMTYPE where that may not be asked. */
static int find_nearest(int pid, const char *path, struct far *far, bool *ret_is_its_own)
{
	char folder[SHARE_PATH_BYTES];
	size_t length = strlen(path);
	int r = far_open(pid, path, far);

	*ret_is_its_own = true;
	for (unsigned i = 0; r < 0 && r != -EMEDIUMTYPE && length > 0; i++) {
		while (length > 0 && path[--length] != '/')
			;
		snprintf(folder, sizeof(folder), "%.*s", length ? (int)length : 1, path);
		r = far_open(pid, folder, far);
		*ret_is_its_own = i == 0;
	}
	return r;
}

/* Where nothing names one, by who the process is and what it sees there. */
static void find_default(int pid, bool is_own, char ret_path[REGION_DEFAULT_BYTES])
{
	static const struct file_identity none = {.owner = (uid_t)-1};
	struct file_identity there;
	bool is_there = far_identify(pid, REGION_DEFAULT_PATH, &there) == 0;
	uid_t user;

	region_default_path_of(user_of_process(pid, &user) ? user : geteuid(),
		is_own	   ? &none
		: is_there ? &there
			   : NULL,
		ret_path);
}

static void read_region(int pid, struct inspection *i)
{
	struct inspected_region *r = &i->region;
	char own[REGION_DEFAULT_BYTES];
	const char *path = own;
	_cleanup_(far_close) struct far folder = FAR_NULL;
	bool is_its_own;
	int outcome;

	find_default(pid, i->has_rights_of_file, own);
	if (i->shares[0].share.region[0])
		path = i->shares[0].share.region;
	else if (i->shares[1].share.region[0])
		path = i->shares[1].share.region;
	else if (i->options.region_path)
		path = i->options.region_path;
	snprintf(r->path, sizeof(r->path), "%s", path);
	outcome = find_nearest(pid, r->path, &folder, &is_its_own);
	r->is_strange = outcome == -EMEDIUMTYPE;
	r->file_system = r->is_strange ? "a file system that was not looked at"
				       : filesystem_at(folder.path)->name;
	/* Nothing is looked up in the folder: what is mounted there may be the process's own. */
	outcome = r->is_strange ? 0 : region_foresee(folder.path);
	if (outcome == 0 && !is_its_own)
		outcome = -ENOENT;
	if (outcome) {
		r->why = region_explain(outcome);
		r->right = region_remedy(outcome);
	}
}

void inspect_process(int pid, struct inspection *ret_inspection)
{
	struct inspection i = {.library = ""};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	i.is_there = pid > 0 && access(path, F_OK) == 0;
	if (i.is_there)
		pid = process_find_thread(pid);
	i.is_readable = i.is_there && look_is_allowed(pid) &&
			read_environment(pid, &i.environment) == 0 && find_libraries(pid, &i);
	if (i.is_readable) {
		const struct option_source source = {.lookup = look_up,
			.context = i.environment,
			.has_no_paths = has_rights_of_file(pid)};

		i.has_rights_of_file = source.has_no_paths;
		options_read(&i.options, &source);
		i.preloaded_by = find_preload(pid, i.environment);
		find_before(look_up(i.environment, "LD_PRELOAD"), i.before, sizeof(i.before));
		read_shares(pid, &i);
		read_region(pid, &i);
	}
	*ret_inspection = i;
}

void inspect_clear(struct inspection *inspection)
{
	free(inspection->environment);
	inspection->environment = NULL;
}
