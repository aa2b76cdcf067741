/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container's limits need on the host.
 *
 * First the container's JSON is kept, then its files are made from that, and removed before it: so after a kill at any
 * place a file without its JSON is never left, and prepare_restore() or prepare_collect() goes on. The lock of the folder
 * of such JSON is held all the while.
 */
#include "plugin/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mark.h"
#include "plugin/kept.h"
#include "plugin/library.h"

#define LOG_TOPIC      LOG_KUBELET

#define HOST_PATH_MOST 90 /* with a UUID and a slice's name behind it, still a path of a share */
#define SLICE_SHOWN    17 /* characters of a container's name in its slice's, where it is too long */
#define SHARE_FOLDER   "/etc/vgpu"
#define LOCK_FOLDER    "/tmp/vgpulock"
#define PRELOAD	       "/etc/ld.so.preload"

static int read_boot(char ret_boot[KEPT_BOOT_BYTES], struct err *err)
{
	size_t length;
	int r = file_read("/proc/sys/kernel/random/boot_id", ret_boot, KEPT_BOOT_BYTES, &length);

	if (r < 0)
		return err_set(err, -r, "read the machine's boot id: %s", strerror(-r));
	ret_boot[strcspn(ret_boot, "\n")] = '\0';
	return 0;
}

/* As HAMi names it: of a random UUID, so that nobody can know it beforehand. */
static void name_cache(char ret_cache[CONTAINER_CACHE_BYTES])
{
	uint64_t high = mark_random(), low = mark_random();

	high = (high & ~UINT64_C(0xf000)) | 0x4000;
	low = (low & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
	snprintf(ret_cache, CONTAINER_CACHE_BYTES,
		"%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64 ".cache",
		high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48,
		low & UINT64_C(0xffffffffffff));
}

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

/* The key, where it is short enough to be a slice's name; else its beginning and a sum of all of it. */
static void name_slice(const char *key, char ret_name[SHARE_NAME_BYTES])
{
	int pod = (int)(strchr(key, '_') - key) + 1;

	if (strlen(key) < SHARE_NAME_BYTES)
		strcpy(ret_name, key);
	else
		snprintf(ret_name, SHARE_NAME_BYTES, "%.*s.%08x", pod + SLICE_SHOWN, key,
			hash_of(key));
}

static int check_grant(const struct share *grant, struct err *err)
{
	char text[SHARE_FILE_BYTES];
	struct share_fault fault;
	struct share again;
	size_t length;
	int r = share_format(grant, text, sizeof(text), &length);

	if (r < 0 || grant->device_count == 0)
		return err_set(err, EINVAL, "the container is granted no device, or too many");
	for (unsigned i = 0; i < grant->device_count; i++)
		if (strchr(grant->devices[i].uuid, '/') || grant->devices[i].uuid[0] == '.' ||
			!strcmp(grant->devices[i].uuid, SHARE_ANY_DEVICE))
			return err_set(err, EINVAL, "'%.100s' is no device's UUID",
				grant->devices[i].uuid);
	if (share_parse(text, length, &again, &fault) < 0)
		return err_set(err, EINVAL, "the container's grant cannot be: %s", fault.why);
	return 0;
}

/* The request with all names in it; those of an earlier call where there was one. */
static int plan(const struct prepare_settings *settings, const struct kept_folder *folder,
	const struct prepare_request *request, struct kept *kept, struct err *err)
{
	struct kept before;
	char key[CONTAINER_KEY_BYTES];
	int r = kept_key(request->pod_uid, request->container, key);

	if (r < 0)
		return err_set(err, EINVAL,
			"'%.64s', '%.64s' are no pod's UID and container's name", request->pod_uid,
			request->container);
	*kept = (struct kept){.container.share = request->grant};
	snprintf(kept->pod_uid, sizeof(kept->pod_uid), "%s", request->pod_uid);
	snprintf(kept->version, sizeof(kept->version), "%s", settings->version);
	strcpy(kept->container.key, key);
	name_slice(key, kept->container.share.slice);
	if (kept_read(folder, key, &before) == 0)
		strcpy(kept->container.cache, before.container.cache);
	else
		name_cache(kept->container.cache);
	if (strlen(settings->place.hook) >= HOST_PATH_MOST ||
		strlen(settings->place.turns) >= HOST_PATH_MOST)
		return err_set(err, ENAMETOOLONG, "the paths of the host's folders are too long");
	sprintf(kept->container.share.region, "%s/%s", settings->place.hook, kept->container.cache);
	strcpy(kept->container.share.turns, settings->place.turns);
	r = check_grant(&kept->container.share, err);
	return r < 0 ? r : read_boot(kept->boot, err);
}

static void add(struct prepared *p, bool is_read_only, const char *to, const char *from)
{
	struct prepare_mount *m = &p->mounts[p->mount_count++];

	snprintf(m->to, sizeof(m->to), "%s", to);
	snprintf(m->from, sizeof(m->from), "%s", from);
	m->is_read_only = is_read_only;
}

static void add_turns(struct prepared *p, const struct container *c)
{
	char record[SHARE_PATH_BYTES + SHARE_UUID_BYTES + SHARE_NAME_BYTES];

	add(p, true, c->share.turns, c->share.turns);
	for (unsigned i = 0; i < c->share.device_count; i++) {
		snprintf(record, sizeof(record), "%s/%s/%s", c->share.turns,
			c->share.devices[i].uuid, c->share.slice);
		add(p, false, record, record);
	}
}

static int list_mounts(const struct prepare_settings *settings, const struct kept *kept,
	bool is_uncontrolled, struct prepared *ret_prepared, struct err *err)
{
	const struct container_place *place = &settings->place;
	struct prepared p = {.mount_count = 0};
	char folder[CONTAINER_PATH_BYTES], from[CONTAINER_PATH_BYTES], to[SHARE_PATH_BYTES];
	int r = container_region_path(place, &kept->container, from);

	if (r < 0)
		return err_set(err, -r, "the paths of the host's folders are too long");
	strcpy(p.slice, kept->container.share.slice);
	strcpy(p.cache, kept->container.share.region);
	strcpy(folder, from);
	*strrchr(folder, '/') = '\0';
	add(&p, true, place->hook, folder);
	add(&p, false, p.cache, from);
	snprintf(to, sizeof(to), "%s/libvgpu.so", place->hook);
	library_path(place->hook, kept->version, from);
	add(&p, true, to, from);
	if (!is_uncontrolled) {
		snprintf(from, sizeof(from), "%s/ld.so.preload", place->hook);
		add(&p, true, PRELOAD, from);
	}
	snprintf(from, sizeof(from), "%s/%s", place->shares, kept->container.key);
	add(&p, true, SHARE_FOLDER, from);
	if (*place->lock)
		add(&p, true, LOCK_FOLDER, place->lock);
	if (*place->turns)
		add_turns(&p, &kept->container);
	*ret_prepared = p;
	return 0;
}

int prepare_container(const struct prepare_settings *settings,
	const struct prepare_request *request, struct prepared *ret_prepared, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct kept kept;
	int r = kept_open(settings->state, &folder, err);

	if (r < 0)
		return r;
	r = plan(settings, &folder, request, &kept, err);
	if (r == 0)
		r = library_check(settings->place.hook, settings->version, err);
	if (r < 0)
		return r;
	r = kept_write(&folder, &kept);
	if (r < 0)
		return err_set(err, -r, "keep %s in %.200s: %s", kept.container.key,
			settings->state, strerror(-r));
	FAULT("prepare: kept");
	r = container_make(&settings->place, &kept.container, false, err);
	return r < 0 ? r
		     : list_mounts(settings, &kept, request->is_uncontrolled, ret_prepared, err);
}

struct restore {
	const struct prepare_settings *settings;
	const struct kept_folder *folder;
	char boot[KEPT_BOOT_BYTES];
	unsigned failed;
};

/* Nothing of a container whose JSON is broken can be made; the JSON is left for people to see. */
static int restore_one(void *context, const char *key, const struct kept *kept)
{
	struct restore *restore = context;
	struct err err = ERR_NULL;
	struct kept now;
	bool is_new_boot;
	int r;

	if (!kept) {
		log_error("what was kept of a container is broken", STR("container", key));
		restore->failed++;
		return 0;
	}
	now = *kept;
	is_new_boot = strcmp(kept->boot, restore->boot);
	strcpy(now.boot, restore->boot);
	r = container_make(&restore->settings->place, &kept->container, is_new_boot, &err);
	FAULT("prepare: restored");
	/* Only now, so that a kill in between begins the books anew once more. */
	if (r == 0 && is_new_boot)
		r = kept_write(restore->folder, &now);
	if (r < 0) {
		log_error("a container's files could not be made again", STR("container", key),
			STR("why", err.text[0] ? err.text : strerror(-r)));
		restore->failed++;
	}
	return 0;
}

int prepare_restore(const struct prepare_settings *settings, unsigned *ret_failed, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct restore restore = {.settings = settings, .folder = &folder};
	int r = kept_open(settings->state, &folder, err);

	if (r == 0)
		r = container_check_place(&settings->place, err);
	if (r == 0)
		r = read_boot(restore.boot, err);
	if (r < 0)
		return r;
	r = kept_each(&folder, restore_one, &restore);
	if (r < 0)
		return err_set(
			err, -r, "read %.300s/containers: %s", settings->state, strerror(-r));
	*ret_failed = restore.failed;
	return 0;
}

struct collect {
	const struct prepare_settings *settings;
	const struct kept_folder *folder;
	const char *const *pod_uids;
	size_t count;
	int64_t now_s;
};

static bool is_listed(const struct collect *collect, const char *pod_uid)
{
	for (size_t i = 0; i < collect->count; i++)
		if (!strcmp(collect->pod_uids[i], pod_uid))
			return true;
	return false;
}

/* One that seems to come from the future, because the clock was set back, is young, too. */
static bool is_young(const struct collect *collect, const struct kept *kept)
{
	return collect->now_s - kept->made_s < PREPARE_YOUNG_S;
}

static int collect_one(void *context, const char *key, const struct kept *kept)
{
	const struct collect *collect = context;
	const struct container_place *place = &collect->settings->place;
	struct err err = ERR_NULL;
	int r;

	if (!kept)
		return 0;
	if (is_listed(collect, kept->pod_uid) || is_young(collect, kept) ||
		container_is_running(place, &kept->container)) {
		container_trim(place, &kept->container);
		return 0;
	}
	r = container_remove(place, &kept->container, &err);
	FAULT("prepare: files removed");
	if (r == 0)
		r = kept_remove(collect->folder, key);
	if (r < 0)
		log_warn("the files of a container that is gone stay", STR("container", key),
			STR("why", err.text[0] ? err.text : strerror(-r)));
	else
		log_info(
			"the files of a container that is gone are removed", STR("container", key));
	return 0;
}

int prepare_collect(const struct prepare_settings *settings, const char *const *pod_uids,
	size_t count, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct collect collect = {settings, &folder, pod_uids, count, (int64_t)time(NULL)};
	int r = kept_open(settings->state, &folder, err);

	if (r < 0)
		return r;
	r = kept_each(&folder, collect_one, &collect);
	if (r < 0)
		return err_set(
			err, -r, "read %.300s/containers: %s", settings->state, strerror(-r));
	return library_collect(
		settings->state, settings->place.hook, settings->version, &folder, err);
}
