/* SPDX-License-Identifier: Apache-2.0 */
/* Which NVML tells the library what processes hold. */
#define LOG_TOPIC LOG_DOOR
#include "tenant/driver/own_nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/scratch.h"
#include "tenant/driver/symbols.h"

#define DRIVER_FILE "libcuda.so."
#define NVML_FILE   "libnvidia-ml.so."
#define CHUNK_BYTES 4096

/* A line of /proc/self/maps, "BEGIN-END rw-p OFFSET 08:01 INODE    /path"; of a longer one the end is left out. */
struct reading {
	char chunk[CHUNK_BYTES];
	char line[PATH_MAX + 128];
	size_t length;
};

static uint64_t read_hex(const char **at)
{
	uint64_t value = 0;

	for (;; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			value = value * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + (uint64_t)(c - 'a') + 10;
		else
			return value;
	}
}

static bool holds(const char *line, uint64_t address)
{
	uint64_t begin = read_hex(&line);

	return *line++ == '-' && address >= begin && address < read_hex(&line);
}

/* -EAGAIN: not yet. */
static int take(struct reading *r, char c, uint64_t address, char ret_path[PATH_MAX])
{
	const char *path;

	if (c != '\n') {
		if (r->length < sizeof(r->line) - 1)
			r->line[r->length++] = c;
		return -EAGAIN;
	}
	r->line[r->length] = '\0';
	r->length = 0;
	if (!holds(r->line, address))
		return -EAGAIN;
	path = strchr(r->line, '/');
	if (!path || strlen(path) >= PATH_MAX)
		return path ? -ENAMETOOLONG : -ESRCH;
	strcpy(ret_path, path);
	return 0;
}

int own_nvml_find_file(const void *address, char ret_path[PATH_MAX])
{
	_cleanup_fd_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	SCRATCH_READY(struct reading, reading);
	ssize_t got;
	int r;

	/* Without /proc nothing is found: -ENOENT is that nothing lies there. */
	if (fd < 0)
		return -ESRCH;
	if (!reading)
		return -ENOMEM;
	reading->length = 0;
	while ((got = read(fd, reading->chunk, CHUNK_BYTES)) > 0)
		for (ssize_t i = 0; i < got; i++) {
			r = take(reading, reading->chunk[i], (uintptr_t)address, ret_path);
			if (r != -EAGAIN)
				return r;
		}
	return got < 0 ? -errno : -ESRCH;
}

static bool is_roots_alone(const char *path)
{
	struct file_identity id;

	return file_identify_path(path, &id) == 0 && id.owner == 0 && !(id.mode & 022);
}

bool own_nvml_is_roots(char *path)
{
	bool is_roots = path[0] == '/' && is_roots_alone(path);

	for (size_t i = strlen(path); is_roots && i-- > 0;) {
		char kept = path[i + 1];

		if (path[i] != '/')
			continue;
		path[i + 1] = '\0';
		is_roots = is_roots_alone(path);
		path[i + 1] = kept;
	}
	return is_roots;
}

struct paths {
	char driver[PATH_MAX], nvml[PATH_MAX];
};

static int look_beside(struct paths *p, const char *version)
{
	const char *name = strrchr(p->driver, '/') + 1;
	struct file_identity id;
	int length = snprintf(p->nvml, sizeof(p->nvml), "%.*s" NVML_FILE "%s",
		(int)(name - p->driver), p->driver, version);

	return length < (int)sizeof(p->nvml) ? file_identify_path(p->nvml, &id) : -ENAMETOOLONG;
}

static int find_beside(struct paths *p)
{
	const char *name = strrchr(p->driver, '/') + 1;
	int r = -ENOENT;

	if (strncmp(name, DRIVER_FILE, strlen(DRIVER_FILE)) == 0)
		r = look_beside(p, name + strlen(DRIVER_FILE));
	return r == -ENOENT ? look_beside(p, "1") : r;
}

/* What a library's dynamic section lies in is its own file, whatever it takes its functions from. */
static bool counts(void *library, struct paths *p)
{
	static _Atomic bool is_said;
	const struct link_map *map = library;

	if (own_nvml_find_file(map->l_ld, p->nvml) < 0)
		return false;
	if (own_nvml_is_roots(p->nvml) || !own_nvml_is_roots(p->driver))
		return true;
	if (!atomic_exchange(&is_said, true))
		log_error("the process finds an NVML that is not root's alone, so it is not asked "
			  "what processes hold",
			STR("library", p->nvml), STR("right", "NVML beside the driver"));
	return false;
}

static void *open_by_name(struct paths *p)
{
	const struct libc_symbols *libc = symbols_libc();
	void *library = libc ? libc->dlopen(NVML_FILE "1", RTLD_LAZY) : NULL;

	if (!library || counts(library, p))
		return library;
	libc->dlclose(library);
	return NULL;
}

void *own_nvml_open(const void *driver_function)
{
	const struct libc_symbols *libc = symbols_libc();
	int saved_errno = errno, r = -ENOMEM;
	SCRATCH_READY(struct paths, p);
	void *library = NULL;

	if (libc && p)
		r = own_nvml_find_file(driver_function, p->driver);
	if (r == 0)
		r = find_beside(p);
	/* One that cannot be loaded at this moment is still the one that counts. */
	if (r == 0)
		library = libc->dlopen(p->nvml, RTLD_LAZY);
	else if (r == -ENOENT)
		library = open_by_name(p);
	errno = saved_errno;
	return library;
}
