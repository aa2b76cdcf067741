/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tenant library and the simulated node lie. */
#include "node/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The folder of the library as it was configured: relative to the prefix, so that an installation
 * that was moved as a whole still finds itself, or absolute where it was configured so.
 */
#ifndef VGPU_PKGLIBDIR
#define VGPU_PKGLIBDIR "lib/vgpu"
#endif

#define FOLDERS_MAX 4

/* Folders in which the installed or built library may lie, best first. */
struct folders {
	char path[FOLDERS_MAX][PLACE_BYTES];
	bool is_build[FOLDERS_MAX]; /* laid out as a build folder is */
	unsigned count;
};

static void add(struct folders *f, bool is_build, const char *first, const char *second)
{
	int length = snprintf(f->path[f->count], PLACE_BYTES, "%s%s", first, second);

	if (length < 0 || length >= PLACE_BYTES)
		return;
	f->is_build[f->count++] = is_build;
}

/* Cuts the last part of a path off; "" where there is none. */
static void cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
	else
		*path = '\0';
}

static void list_folders(struct folders *ret_folders)
{
	const char *named = getenv("VGPU_LIBDIR");
	char self[PLACE_BYTES - sizeof(VGPU_PKGLIBDIR) - 8];
	struct folders f = {.count = 0};
	ssize_t length;

	if (named && *named) {
		add(&f, false, named, "");
		*ret_folders = f;
		return;
	}
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length < 0 ? 0 : length] = '\0';
	cut_last(self); /* the program's folder: bin, or src/cli of a build */
	cut_last(self);
	if (VGPU_PKGLIBDIR[0] == '/')
		add(&f, false, VGPU_PKGLIBDIR, "");
	else
		add(&f, false, self, "/" VGPU_PKGLIBDIR);
	add(&f, false, self, "/lib/vgpu");
	add(&f, true, self, "/tenant");
	*ret_folders = f;
}

static int join(char *to, size_t size, const char *first, const char *second)
{
	int length = snprintf(to, size, "%s/%s", first, second);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

/* Says that nothing was found, and where it was looked for. */
static int say_missing(struct err *err, const char *what, const struct folders *f)
{
	char where[300] = "";

	for (unsigned i = 0; i < f->count; i++) {
		size_t used = strlen(where);

		snprintf(where + used, sizeof(where) - used, "%s%.90s", i ? ", " : "", f->path[i]);
	}
	return err_set(err, ENOENT,
		"%s is not in %s; install it, or name its folder in VGPU_LIBDIR", what, where);
}

int place_find_library(char ret_path[PLACE_BYTES], struct err *err)
{
	char path[PLACE_BYTES], whole[PLACE_BYTES];
	struct folders f;

	list_folders(&f);
	for (unsigned i = 0; i < f.count; i++) {
		if (join(path, sizeof(path), f.path[i], "libvgpu.so") < 0 || access(path, R_OK) < 0)
			continue;
		if (!realpath(path, whole))
			return err_set(err, errno, "%s: %s", path, strerror(errno));
		if (strpbrk(whole, " :\t"))
			return err_set(err, EINVAL,
				"%s cannot be preloaded: the path must have no space and no colon",
				whole);
		strcpy(ret_path, whole);
		return 0;
	}
	return say_missing(err, "libvgpu.so", &f);
}

/* Tries one folder for both libraries of the node. */
static int try_sim(const char *cuda, const char *nvml, struct place_sim *ret_sim)
{
	char library[PLACE_BYTES], cuda_whole[PLACE_BYTES], nvml_whole[PLACE_BYTES];

	if (!realpath(cuda, cuda_whole) || !realpath(nvml, nvml_whole))
		return -errno;
	if (join(library, sizeof(library), cuda_whole, "libcuda.so.1") < 0 ||
		access(library, R_OK) < 0)
		return -ENOENT;
	strcpy(ret_sim->cuda, library);
	if (join(library, sizeof(library), nvml_whole, "libnvidia-ml.so.1") < 0 ||
		access(library, R_OK) < 0)
		return -ENOENT;
	strcpy(ret_sim->nvml, library);
	if (strcmp(cuda_whole, nvml_whole) == 0)
		strcpy(ret_sim->library_path, cuda_whole);
	else
		snprintf(ret_sim->library_path, sizeof(ret_sim->library_path), "%s:%s", cuda_whole,
			nvml_whole);
	return 0;
}

int place_find_sim(struct place_sim *ret_sim, struct err *err)
{
	char cuda[PLACE_BYTES], nvml[PLACE_BYTES];
	struct folders f;

	list_folders(&f);
	for (unsigned i = 0; i < f.count; i++) {
		/* a build folder is <build>/src/tenant, and the node's parts are in <build>/sim */
		const char *c = f.is_build[i] ? "../../sim/cuda" : "sim";
		const char *n = f.is_build[i] ? "../../sim/nvml" : "sim";

		if (join(cuda, sizeof(cuda), f.path[i], c) < 0 ||
			join(nvml, sizeof(nvml), f.path[i], n) < 0)
			continue;
		if (try_sim(cuda, nvml, ret_sim) == 0)
			return 0;
	}
	return say_missing(err, "the simulated node (sim/libcuda.so.1, sim/libnvidia-ml.so.1)", &f);
}

int place_find_sim_mps(char ret_path[PLACE_BYTES], struct err *err)
{
	char path[PLACE_BYTES];
	struct folders f;

	list_folders(&f);
	for (unsigned i = 0; i < f.count; i++) {
		const char *program = f.is_build[i] ? "../../sim/mps/nvidia-cuda-mps-control"
						    : "sim/nvidia-cuda-mps-control";

		if (join(path, sizeof(path), f.path[i], program) == 0 && access(path, X_OK) == 0 &&
			realpath(path, ret_path))
			return 0;
	}
	return say_missing(err, "the simulated node's sim/nvidia-cuda-mps-control", &f);
}
