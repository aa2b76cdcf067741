/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's devices, as runtimes know them.
 *
 * The driver's libraries end with its version, and lie in one folder: libcuda.so.VERSION says both. A container finds them by
 * the links that NVIDIA's hook makes.
 */
#include "plugin/host/cdi.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/folder.h"
#include "plugin/host/kept.h"

#define PATH_BYTES   4096
#define CDI_VERSION  "0.5.0" /* the oldest that has all that is here; runtimes of 2022 read it */
#define FOLDER_MODE  0755
#define FILE_MODE    0644
#define LIBRARY_CUDA "libcuda.so."

/* In containers of any distribution the linker looks there, too. */
static const char *const library_folders[] = {"/usr/lib64", "/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu", "/lib64", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"};

static const char *const control_files[] = {
	"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"};

struct driver {
	const char *folder; /* in its root */
	char version[64];
};

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

static void cleanup_glob(glob_t *found)
{
	globfree(found);
}

/* "/" is no prefix. */
static const char *prefix_of(const char *root)
{
	return strcmp(root, "/") ? root : "";
}

static int find_driver(
	const struct cdi_request *request, struct driver *ret_driver, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(library_folders); i++) {
		_cleanup_(cleanup_glob) glob_t found = {0};
		char pattern[PATH_BYTES];

		snprintf(pattern, sizeof(pattern), "%s%s/" LIBRARY_CUDA "[0-9]*.*",
			prefix_of(request->driver_root_here), library_folders[i]);
		if (glob(pattern, 0, NULL, &found) || found.gl_pathc == 0)
			continue;
		if (found.gl_pathc > 1)
			return err_set(err, EEXIST,
				"there are two drivers: %.150s and %.150s; one is right",
				found.gl_pathv[0], found.gl_pathv[1]);
		ret_driver->folder = library_folders[i];
		snprintf(ret_driver->version, sizeof(ret_driver->version), "%.60s",
			strstr(strrchr(found.gl_pathv[0], '/'), LIBRARY_CUDA) +
				strlen(LIBRARY_CUDA));
		return 0;
	}
	return err_set(err, ENOENT,
		"libcuda.so.VERSION is in no library folder of the driver's root, %.200s; see "
		"--driver-root-ctr-path",
		request->driver_root_here);
}

static json_t *device_node(const struct cdi_request *request, const char *path)
{
	const char *root = *request->dev_root ? request->dev_root : request->driver_root;
	json_t *host = json_sprintf("%s%s", prefix_of(root), path);

	return json_pack("{s:s, s:o, s:s}", "path", path, "hostPath", host, "permissions", "rw");
}

static json_t *mount_of(const struct cdi_request *request, const char *from, const char *to)
{
	json_t *host = json_sprintf("%s%s", prefix_of(request->driver_root), from);

	return json_pack("{s:o, s:s, s:[s, s, s, s, s]}", "hostPath", host, "containerPath", to,
		"options", "ro", "nosuid", "nodev", "rbind", "rprivate");
}

static void list_part(const struct cdi_request *request, const struct cdi_part *part, json_t *list)
{
	const int numbers[] = {part->capability.instance, part->capability.compute};
	json_t *nodes = json_array();
	char path[64];

	snprintf(path, sizeof(path), "/dev/nvidia%u", part->minor);
	json_array_append_new(nodes, device_node(request, path));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i] < 0)
			continue;
		snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%d", numbers[i]);
		json_array_append_new(nodes, device_node(request, path));
	}
	json_array_append_new(list, json_pack("{s:s, s:{s:o}}", "name", part->uuid,
					    "containerEdits", "deviceNodes", nodes));
}

static json_t *list_devices(const struct cdi_request *request)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < request->devices->count; i++) {
		const struct inventory_device *device = &request->devices->device[i];
		char path[32], index[16];
		json_t *node;

		snprintf(path, sizeof(path), "/dev/nvidia%u", device->minor);
		snprintf(index, sizeof(index), "%u", device->index);
		node = device_node(request, path);
		json_array_append_new(list, json_pack("{s:s, s:{s:[o]}}", "name",
						    request->has_indexes ? index : device->uuid,
						    "containerEdits", "deviceNodes", node));
	}
	for (unsigned i = 0; i < request->part_count; i++)
		list_part(request, &request->parts[i], list);
	return list;
}

/* A node that is not there would keep every container from starting. */
static json_t *list_control_files(const struct cdi_request *request)
{
	json_t *list = json_array();
	char here[PATH_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(control_files); i++) {
		snprintf(here, sizeof(here), "%s%s", prefix_of(request->driver_root_here),
			control_files[i]);
		if (access(here, F_OK) == 0 || access(control_files[i], F_OK) == 0)
			json_array_append_new(list, device_node(request, control_files[i]));
	}
	return list;
}

/* The name by which programs ask for a library: libX.so.1 of libX.so.VERSION. */
static void name_link(const char *library, const char *version, char ret_link[PATH_BYTES])
{
	snprintf(ret_link, PATH_BYTES, "%.*s1", (int)(strlen(library) - strlen(version)), library);
}

static int list_libraries(const struct cdi_request *request, const struct driver *driver,
	json_t *mounts, json_t *links, struct err *err)
{
	_cleanup_(cleanup_glob) glob_t found = {0};
	char pattern[PATH_BYTES], link[PATH_BYTES];
	size_t root = strlen(prefix_of(request->driver_root_here));

	snprintf(pattern, sizeof(pattern), "%s%s/lib*.so.%s", prefix_of(request->driver_root_here),
		driver->folder, driver->version);
	if (glob(pattern, 0, NULL, &found))
		return err_set(err, ENOENT, "%.300s: nothing is found", pattern);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i] + root;

		json_array_append_new(mounts, mount_of(request, path, path));
		name_link(path, driver->version, link);
		if (!*request->hook) {
			json_array_append_new(mounts, mount_of(request, path, link));
			continue;
		}
		json_array_append_new(links, json_string("--link"));
		json_array_append_new(links, json_sprintf("%s::%s", strrchr(path, '/') + 1, link));
	}
	snprintf(pattern, sizeof(pattern), "%s/usr/bin/nvidia-smi",
		prefix_of(request->driver_root_here));
	if (access(pattern, X_OK) == 0)
		json_array_append_new(
			mounts, mount_of(request, "/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"));
	return 0;
}

/* arguments is taken over. */
static json_t *hook_of(const struct cdi_request *request, const char *what, json_t *arguments)
{
	json_array_insert_new(arguments, 0, json_string(what));
	json_array_insert_new(arguments, 0, json_string("hook"));
	json_array_insert_new(arguments, 0, json_string(strrchr(request->hook, '/') + 1));
	return json_pack("{s:s, s:s, s:o}", "hookName", "createContainer", "path", request->hook,
		"args", arguments);
}

static int make(const struct cdi_request *request, json_t **ret_spec, struct err *err)
{
	_cleanup_(cleanup_json) json_t *mounts = json_array();
	_cleanup_(cleanup_json) json_t *links = json_array();
	_cleanup_(cleanup_json) json_t *hooks = json_array();
	struct driver driver;
	int r = find_driver(request, &driver, err);

	if (r == 0)
		r = list_libraries(request, &driver, mounts, links, err);
	if (r < 0)
		return r;
	if (*request->hook) {
		json_array_append_new(
			hooks, hook_of(request, "create-symlinks", json_incref(links)));
		json_array_append_new(
			hooks, hook_of(request, "update-ldcache",
				       json_pack("[s, s]", "--folder", driver.folder)));
	}
	*ret_spec = json_pack("{s:s, s:s, s:o, s:{s:[s], s:o, s:O, s:O}}", "cdiVersion",
		CDI_VERSION, "kind", CDI_KIND, "devices", list_devices(request), "containerEdits",
		"env", "NVIDIA_VISIBLE_DEVICES=void", "deviceNodes", list_control_files(request),
		"hooks", hooks, "mounts", mounts);
	return *ret_spec ? 0 : err_set(err, ENOMEM, "no memory");
}

static const struct extra {
	unsigned bit;
	const char *class, *nodes[3], *mounts[3]; /* patterns; and paths, where they are there */
} extras[] = {
	{CDI_GDRCOPY, "gdrcopy", {"/dev/gdrdrv"}, {NULL}},
	{CDI_GDS, "gds", {"/dev/nvidia-fs*"}, {"/run/udev", "/etc/cufile.json"}},
	{CDI_MOFED, "mofed", {"/dev/infiniband/uverbs*", "/dev/infiniband/rdma_cm"}, {NULL}},
};

/* As the driver's root has it, or this program's own. */
static void add_nodes(const struct cdi_request *request, const char *pattern, json_t *nodes)
{
	const char *roots[] = {prefix_of(request->driver_root_here), ""};

	for (size_t i = 0; i < ARRAY_SIZE(roots) && json_array_size(nodes) == 0; i++) {
		_cleanup_(cleanup_glob) glob_t found = {0};
		char whole[PATH_BYTES];

		snprintf(whole, sizeof(whole), "%s%s", roots[i], pattern);
		if (glob(whole, 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			json_array_append_new(
				nodes, device_node(request, found.gl_pathv[k] + strlen(roots[i])));
	}
}

static int put_spec(int folder_fd, const char *class, json_t *devices, struct err *err)
{
	_cleanup_(cleanup_json) json_t *spec = json_pack("{s:s, s:o, s:O}", "cdiVersion",
		CDI_VERSION, "kind", json_sprintf(CDI_VENDOR "/%s", class), "devices", devices);
	_cleanup_free_ char *text = spec ? json_dumps(spec, JSON_INDENT(1)) : NULL;
	char name[sizeof(CDI_VENDOR) + 32];
	int r = -ENOMEM;

	snprintf(name, sizeof(name), CDI_VENDOR "-%s.json", class);
	if (text)
		r = folder_put(folder_fd, name, text, strlen(text), FILE_MODE, FOLDER_SYNC);
	return r < 0 ? err_set(err, -r, "write %s: %s", name, strerror(-r)) : 0;
}

static int put_extra(const struct cdi_request *request, const struct extra *extra, int folder_fd,
	struct err *err)
{
	_cleanup_(cleanup_json) json_t *devices = NULL;
	json_t *nodes = json_array(), *mounts = json_array();
	char here[PATH_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(extra->nodes) && extra->nodes[i]; i++) {
		json_t *more = json_array();

		add_nodes(request, extra->nodes[i], more);
		json_array_extend(nodes, more);
		json_decref(more);
	}
	for (size_t i = 0; i < ARRAY_SIZE(extra->mounts) && extra->mounts[i]; i++) {
		snprintf(here, sizeof(here), "%s%s", prefix_of(request->driver_root_here),
			extra->mounts[i]);
		if (access(here, F_OK) == 0)
			json_array_append_new(
				mounts, mount_of(request, extra->mounts[i], extra->mounts[i]));
	}
	if (json_array_size(nodes) == 0) {
		json_decref(nodes);
		json_decref(mounts);
		return err_set(err, ENOENT, "--%s-enabled, and %s is not there", extra->class,
			extra->nodes[0]);
	}
	devices = json_pack("[{s:s, s:{s:o, s:o}}]", "name", "all", "containerEdits", "deviceNodes",
		nodes, "mounts", mounts);
	return put_spec(folder_fd, extra->class, devices, err);
}

static int put_channels(const struct cdi_request *request, int folder_fd, struct err *err)
{
	_cleanup_(cleanup_json) json_t *devices = json_array();
	char path[64], name[16];

	for (unsigned i = 0; i < request->channel_count; i++) {
		json_t *nodes = json_array();

		snprintf(path, sizeof(path), "/dev/nvidia-caps-imex-channels/channel%u",
			request->channels[i]);
		snprintf(name, sizeof(name), "%u", request->channels[i]);
		add_nodes(request, path, nodes);
		if (json_array_size(nodes) > 0)
			json_array_append_new(
				devices, json_pack("{s:s, s:{s:O}}", "name", name, "containerEdits",
						 "deviceNodes", nodes));
		json_decref(nodes);
	}
	return json_array_size(devices) ? put_spec(folder_fd, "imex-channel", devices, err) : 0;
}

static int put_extras(const struct cdi_request *request, int folder_fd, struct err *err)
{
	int r = put_channels(request, folder_fd, err);

	for (size_t i = 0; i < ARRAY_SIZE(extras) && r == 0; i++)
		if (request->extras & extras[i].bit)
			r = put_extra(request, &extras[i], folder_fd, err);
	return r;
}

static int check_request(const struct cdi_request *request, struct err *err)
{
	if (request->devices->count == 0)
		return err_set(err, ENODEV, "there is no device to specify");
	if (*request->hook && request->hook[0] != '/')
		return err_set(
			err, EINVAL, "'%.200s' is no absolute path of a hook", request->hook);
	for (unsigned i = 0; i < request->devices->count; i++) {
		const char *uuid = request->devices->device[i].uuid;

		if (!*uuid || strspn(uuid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012"
					   "3456789-_.:") != strlen(uuid))
			return err_set(
				err, EINVAL, "'%.100s' cannot be a device's name in CDI", uuid);
	}
	return 0;
}

int cdi_write(const struct cdi_request *request, struct err *err)
{
	_cleanup_(cleanup_json) json_t *spec = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_(kept_close) struct kept_folder kept = KEPT_FOLDER_NULL;
	_cleanup_fd_ int folder_fd = -1;
	int r = check_request(request, err);

	if (r == 0)
		r = kept_open(request->state, &kept, err);
	if (r == 0)
		r = make(request, &spec, err);
	if (r < 0)
		return r;
	text = json_dumps(spec, JSON_INDENT(1));
	if (!text)
		return err_set(err, ENOMEM, "no memory");
	r = folder_make(request->folder, FOLDER_MODE, &folder_fd, err);
	if (r == 0)
		r = put_extras(request, folder_fd, err);
	if (r < 0)
		return r;
	r = folder_put(folder_fd, CDI_FILE, text, strlen(text), FILE_MODE, FOLDER_SYNC);
	return r < 0 ? err_set(err, -r, "write %.200s/" CDI_FILE ": %s", request->folder,
			       strerror(-r))
		     : 0;
}
