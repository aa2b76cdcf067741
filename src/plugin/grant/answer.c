/* SPDX-License-Identifier: Apache-2.0 */
/* The answer for one container: environment, mounts, device files, CDI names and annotations. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/grant/grant.h"
#include "plugin/host/cdi.h"
#include "policy/grant.h"

#define VISIBLE_DEVICES "NVIDIA_VISIBLE_DEVICES"
#define VOLUME_FOLDER	"/var/run/nvidia-container-devices"
#define LIST_BYTES	4096 /* of the names of a slice's devices with commas */

/* A list that does not fit in memory makes no message at all, so only the end asks. */
struct draft {
	V1beta1__ContainerAllocateResponse *answer;
	bool is_short_of_memory;
};

static __attribute__((format(printf, 2, 0))) char *write_text(
	struct draft *draft, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) >= 0)
		return text;
	draft->is_short_of_memory = true;
	return NULL;
}

static char *copy(struct draft *draft, const char *text)
{
	char *made = strdup(text);

	draft->is_short_of_memory |= !made;
	return made;
}

/* A zeroed element of so many bytes at the end of a list of pointers; NULL where there is no memory. */
static void *append(struct draft *draft, void *list, size_t *count, size_t bytes)
{
	void **grown = realloc(*(void ***)list, (*count + 1) * sizeof(*grown));
	void *element = calloc(1, bytes);

	if (grown)
		*(void ***)list = grown;
	if (!grown || !element) {
		free(element);
		draft->is_short_of_memory = true;
		return NULL;
	}
	grown[(*count)++] = element;
	return element;
}

__attribute__((format(printf, 3, 4))) static void put_env(
	struct draft *draft, const char *name, const char *format, ...)
{
	V1beta1__ContainerAllocateResponse__EnvsEntry *entry =
		append(draft, &draft->answer->envs, &draft->answer->n_envs, sizeof(*entry));
	va_list args;

	if (!entry)
		return;
	v1beta1__container_allocate_response__envs_entry__init(entry);
	va_start(args, format);
	entry->key = copy(draft, name);
	entry->value = write_text(draft, format, args);
	va_end(args);
}

static void put_mount(struct draft *draft, const char *at, const char *from, bool is_read_only)
{
	V1beta1__Mount *mount =
		append(draft, &draft->answer->mounts, &draft->answer->n_mounts, sizeof(*mount));

	if (!mount)
		return;
	v1beta1__mount__init(mount);
	mount->container_path = copy(draft, at);
	mount->host_path = copy(draft, from);
	mount->read_only = is_read_only;
}

static void put_file(struct draft *draft, const char *root, const char *path)
{
	V1beta1__DeviceSpec *spec =
		append(draft, &draft->answer->devices, &draft->answer->n_devices, sizeof(*spec));
	char host[SHARE_PATH_BYTES + 64];

	if (!spec)
		return;
	snprintf(host, sizeof(host), "%s%s", strcmp(root, "/") ? root : "", path);
	v1beta1__device_spec__init(spec);
	spec->container_path = copy(draft, path);
	spec->host_path = copy(draft, host);
	spec->permissions = copy(draft, "rw");
}

/* What a device is called in the answer; a part has no index that stays. */
static void name_device(
	const struct config *config, const struct grant_device *of, char ret_name[UUID_TEXT_BYTES])
{
	if (of->part.uuid)
		snprintf(ret_name, UUID_TEXT_BYTES, "%s", of->part.uuid);
	else if (config->device_id == CONFIG_ID_INDEX)
		snprintf(ret_name, UUID_TEXT_BYTES, "%u", of->device->index);
	else
		snprintf(ret_name, UUID_TEXT_BYTES, "%s", of->device->uuid);
}

/* The room is for as many as a slice may have. */
__attribute__((format(printf, 2, 3))) static void add_to_list(
	char list[LIST_BYTES], const char *format, ...)
{
	size_t used = strlen(list);
	va_list args;

	if (used && used + 1 < LIST_BYTES)
		list[used++] = ',';
	va_start(args, format);
	vsnprintf(list + used, LIST_BYTES - used, format, args);
	va_end(args);
}

static void put_device_list(struct draft *draft, const struct config *config,
	const struct grant *grant, const struct grant_paths *paths)
{
	char list[LIST_BYTES] = "", channels[LIST_BYTES] = "", name[UUID_TEXT_BYTES];

	for (unsigned i = 0; i < grant->device_count; i++) {
		name_device(config, &grant->devices[i], name);
		add_to_list(list, "%s", name);
	}
	for (size_t i = 0; i < paths->imex_channel_count; i++)
		add_to_list(channels, "%u", paths->imex_channels[i]);
	/* of both strategies, volume-mounts is what a runtime goes by that knows it */
	put_env(draft, VISIBLE_DEVICES, "%s",
		config->device_lists & CONFIG_LIST_VOLUME_MOUNTS ? VOLUME_FOLDER : list);
	if (*channels && config->device_lists & CONFIG_LIST_ENVVAR)
		put_env(draft, "NVIDIA_IMEX_CHANNELS", "%s", channels);
}

static void put_volume_mounts(struct draft *draft, const struct config *config,
	const struct grant *grant, const struct grant_paths *paths)
{
	char at[sizeof(VOLUME_FOLDER) + UUID_TEXT_BYTES + 16], name[UUID_TEXT_BYTES];

	for (unsigned i = 0; i < grant->device_count; i++) {
		name_device(config, &grant->devices[i], name);
		snprintf(at, sizeof(at), VOLUME_FOLDER "/%s", name);
		put_mount(draft, at, "/dev/null", false);
	}
	for (size_t i = 0; i < paths->imex_channel_count; i++) {
		snprintf(at, sizeof(at), VOLUME_FOLDER "/imex/%u", paths->imex_channels[i]);
		put_mount(draft, at, "/dev/null", false);
	}
}

static void put_cdi_name(struct draft *draft, const struct config *config, char list[LIST_BYTES],
	const char *class, const char *name)
{
	V1beta1__CDIDevice *device;
	char whole[sizeof(CDI_VENDOR) + UUID_TEXT_BYTES + 32];

	snprintf(whole, sizeof(whole), CDI_VENDOR "/%s=%s", class, name);
	add_to_list(list, "%s", whole);
	if (!(config->device_lists & CONFIG_LIST_CDI_CRI))
		return;
	device = append(
		draft, &draft->answer->cdi_devices, &draft->answer->n_cdi_devices, sizeof(*device));
	if (!device)
		return;
	v1beta1__cdidevice__init(device);
	device->name = copy(draft, whole);
}

static void put_cdi_annotation(struct draft *draft, const struct config *config,
	const struct grant *grant, const char *list)
{
	V1beta1__ContainerAllocateResponse__AnnotationsEntry *entry = append(
		draft, &draft->answer->annotations, &draft->answer->n_annotations, sizeof(*entry));
	char key[SHARE_PATH_BYTES + 64];

	if (!entry)
		return;
	v1beta1__container_allocate_response__annotations_entry__init(entry);
	snprintf(key, sizeof(key), "%snvidia-device-plugin_%s", config->cdi_prefix, grant->unique);
	entry->key = copy(draft, key);
	entry->value = copy(draft, list);
}

static void put_cdi(struct draft *draft, const struct config *config, const struct grant *grant,
	const struct grant_paths *paths)
{
	char list[LIST_BYTES] = "", name[UUID_TEXT_BYTES];

	for (unsigned i = 0; i < grant->device_count; i++) {
		name_device(config, &grant->devices[i], name);
		put_cdi_name(draft, config, list, "gpu", name);
	}
	for (size_t i = 0; i < paths->imex_channel_count; i++) {
		snprintf(name, sizeof(name), "%u", paths->imex_channels[i]);
		put_cdi_name(draft, config, list, "imex-channel", name);
	}
	if (config->has_gdrcopy)
		put_cdi_name(draft, config, list, "gdrcopy", "all");
	if (config->has_gds)
		put_cdi_name(draft, config, list, "gds", "all");
	if (config->has_mofed)
		put_cdi_name(draft, config, list, "mofed", "all");
	if (config->device_lists & CONFIG_LIST_CDI_ANNOTATIONS)
		put_cdi_annotation(draft, config, grant, list);
}

static void put_capabilities(
	struct draft *draft, const char *root, const struct capability *capability)
{
	const int numbers[] = {capability->instance, capability->compute};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i] < 0)
			continue;
		snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%d", numbers[i]);
		put_file(draft, root, path);
	}
}

/* Parts of one device have its file together. */
static bool is_first_of_device(const struct grant *grant, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (grant->devices[k].device == grant->devices[i].device)
			return false;
	return true;
}

static void put_device_files(struct draft *draft, const struct config *config,
	const struct grant *grant, const struct grant_paths *paths)
{
	const char *root = *config->dev_root ? config->dev_root : config->driver_root;
	char path[64];

	for (size_t i = 0; i < paths->control_file_count; i++)
		put_file(draft, root, paths->control_files[i]);
	for (unsigned i = 0; i < grant->device_count; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", grant->devices[i].device->minor);
		if (is_first_of_device(grant, i))
			put_file(draft, root, path);
		if (grant->devices[i].part.uuid)
			put_capabilities(draft, root, &grant->devices[i].part.capability);
	}
	for (size_t i = 0; i < paths->imex_channel_count; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia-caps-imex-channels/channel%u",
			paths->imex_channels[i]);
		put_file(draft, root, path);
	}
}

/* How NVIDIA's runtime learns of the devices. */
static void put_devices(struct draft *draft, const struct config *config, const struct grant *grant,
	const struct grant_paths *paths)
{
	if (config->device_lists & CONFIG_LIST_ANY_CDI)
		put_cdi(draft, config, grant, paths);
	if (!(config->device_lists & ~CONFIG_LIST_ANY_CDI))
		return;
	put_device_list(draft, config, grant, paths);
	if (config->device_lists & CONFIG_LIST_VOLUME_MOUNTS)
		put_volume_mounts(draft, config, grant, paths);
	if (config->passes_device_files)
		put_device_files(draft, config, grant, paths);
	if (config->has_gdrcopy)
		put_env(draft, "NVIDIA_GDRCOPY", "enabled");
	if (config->has_gds)
		put_env(draft, "NVIDIA_GDS", "enabled");
	if (config->has_mofed)
		put_env(draft, "NVIDIA_MOFED", "enabled");
}

/*
 * The variables say what the share says, for programs and images that know only them. They are the container's own to
 * change, so they can lower a limit and no more. Limits are in NVML's order, as programs count devices.
 */
static void put_amounts(struct draft *draft, const struct grant *grant)
{
	unsigned common = grant->devices[0].cores_percent;
	char name[48];
	bool differs = false;

	for (unsigned i = 0; i < grant->device_count; i++) {
		const struct grant_device *d = &grant->devices[i];

		snprintf(name, sizeof(name), "CUDA_DEVICE_MEMORY_LIMIT_%u", i);
		put_env(draft, name, "%llum", (unsigned long long)d->memory_mib);
		differs |= d->cores_percent != common;
		/* the common one would be a limit for a device that has none */
		if (!d->cores_percent)
			common = 0;
	}
	put_env(draft, "CUDA_DEVICE_SM_LIMIT", "%u", common);
	for (unsigned i = 0; differs && i < grant->device_count; i++) {
		snprintf(name, sizeof(name), "CUDA_DEVICE_SM_LIMIT_%u", i);
		put_env(draft, name, "%u", grant->devices[i].cores_percent);
	}
}

/* A slice that may grow beyond them has none: the least of all limits is in force, and variables stay. */
static void put_limits(struct draft *draft, const struct config *config, const struct grant *grant)
{
	if (!config->resizes_beyond_limits)
		put_amounts(draft, grant);
	put_env(draft, "CUDA_DEVICE_MEMORY_SHARED_CACHE", "%s", grant->region);
	if (config->memory_scaling > 1)
		put_env(draft, "CUDA_OVERSUBSCRIBE", "true");
	if (*config->library_log_level)
		put_env(draft, "LIBCUDA_LOG_LEVEL", "%s", config->library_log_level);
	if (config->is_core_limit_disabled)
		put_env(draft, "GPU_CORE_UTILIZATION_POLICY", "disable");
}

/* The pipes are in a folder that its clients share, so none of them can put another daemon in the place of this one. */
static void put_mps(struct draft *draft, const struct grant *grant, const struct grant_paths *paths)
{
	const struct grant_device *d = &grant->devices[0];

	put_env(draft, "CUDA_MPS_PIPE_DIRECTORY", "%s", GRANT_MPS_FOLDER);
	put_env(draft, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "%u",
		grant_mps_percent(&grant->share.devices[0].compute));
	put_env(draft, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=%lluM",
		(unsigned long long)d->memory_mib);
	put_mount(draft, GRANT_MPS_FOLDER, paths->mps_pipe, true);
	put_mount(draft, "/dev/shm", paths->mps_memory, false);
}

/* The slice's own record is mounted over the same file in the folder that is read-only. */
static void put_turns(
	struct draft *draft, const struct grant *grant, const struct grant_paths *paths)
{
	char at[SHARE_PATH_BYTES + UUID_TEXT_BYTES];

	put_mount(draft, GRANT_TURNS_FOLDER, paths->turns_folder, true);
	for (unsigned i = 0; i < grant->device_count; i++) {
		if (!paths->records[i])
			continue;
		snprintf(at, sizeof(at), GRANT_TURNS_FOLDER "/%s/%s",
			grant->devices[i].device->uuid, grant->slice);
		put_mount(draft, at, paths->records[i], false);
	}
}

static void put_mounts(
	struct draft *draft, const struct grant *grant, const struct grant_paths *paths)
{
	char folder[SHARE_PATH_BYTES];

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(grant->region, '/') - grant->region),
		grant->region);
	put_mount(draft, grant->library, paths->library, true);
	/* Where the region is a mount of its own, the container needs to write nothing beside it. */
	put_mount(draft, folder, paths->region_folder, paths->region_file);
	put_mount(draft, GRANT_LOCK_FOLDER,
		paths->lock_folder ? paths->lock_folder : GRANT_LOCK_FOLDER, paths->lock_folder);
	if (grant->has_library)
		put_mount(draft, GRANT_PRELOAD, paths->preload, true);
	if (paths->license) {
		put_mount(draft, "/tmp/license", paths->license, true);
		if (paths->validator)
			put_mount(draft, "/usr/bin/vgpuvalidator", paths->validator, true);
	}
	/* ours */
	if (paths->region_file)
		put_mount(draft, grant->region, paths->region_file, false);
	put_mount(draft, GRANT_SHARE_FOLDER, paths->share_folder, true);
	if (paths->turns_folder)
		put_turns(draft, grant, paths);
}

static int check_paths(const struct grant *grant, const struct grant_paths *paths, struct err *err)
{
	const struct {
		const char *what, *path;
	} needed[] = {{"library", paths->library}, {"ld.so.preload", paths->preload},
		{"folder for the region", paths->region_folder},
		{"folder with the share", paths->share_folder},
		{"MPS daemon", grant->is_mps ? paths->mps_pipe : "/"},
		{"shared memory of the MPS daemon", grant->is_mps ? paths->mps_memory : "/"}};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!needed[i].path || !*needed[i].path)
			return err_set(err, EINVAL, "the %s of the slice is not there on this node",
				needed[i].what);
	return 0;
}

int grant_answer(const struct grant_node *node, const struct grant *grant,
	const struct grant_paths *paths, V1beta1__ContainerAllocateResponse **ret_answer,
	struct err *err)
{
	struct draft draft = {.answer = malloc(sizeof(*draft.answer))};
	int result = grant->is_of_parts ? 0 : check_paths(grant, paths, err);

	if (!result && !draft.answer)
		result = err_set(err, ENOMEM, "no memory");
	if (result) {
		free(draft.answer);
		return result;
	}
	v1beta1__container_allocate_response__init(draft.answer);
	if (!grant->is_of_parts)
		put_limits(&draft, node->config, grant);
	put_devices(&draft, node->config, grant, paths);
	if (!grant->is_of_parts)
		put_mounts(&draft, grant, paths);
	if (grant->is_mps)
		put_mps(&draft, grant, paths);
	if (draft.is_short_of_memory) {
		v1beta1__container_allocate_response__free_unpacked(draft.answer, NULL);
		return err_set(err, ENOMEM, "no memory");
	}
	*ret_answer = draft.answer;
	return 0;
}
