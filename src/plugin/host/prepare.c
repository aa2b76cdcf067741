/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container's limits need on the host.
 *
 * First the container's JSON is kept, then its files are made from that, and removed before it: so after a kill at any
 * place a file without its JSON is never left, and prepare_restore() or prepare_collect() goes on. The lock of the folder
 * of such JSON is held all the while. JSON and share are on the disk before the kubelet is answered, because it hands out the
 * same mounts again after a power cut; what is made again of these is not waited for. They get there while the plugin
 * asks the API server.
 */
#include "plugin/host/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "node/folder.h"
#include "plugin/host/kept.h"
#include "plugin/host/library.h"

#define LOG_TOPIC    LOG_KUBELET

#define CACHE_SUFFIX ".cache"

static int read_boot(char ret_boot[FILE_BOOT_BYTES], struct err *err)
{
	int r = file_read_boot(ret_boot);

	return r < 0 ? err_set(err, -r, "read the machine's boot id: %s", strerror(-r)) : 0;
}

static int check_devices(const struct share *share, struct err *err)
{
	if (share->device_count == 0)
		return err_set(err, EINVAL, "the container is granted no device");
	for (unsigned i = 0; i < share->device_count; i++)
		if (strchr(share->devices[i].uuid, '/') || share->devices[i].uuid[0] == '.' ||
			!strcmp(share->devices[i].uuid, SHARE_ANY_DEVICE))
			return err_set(err, EINVAL, "'%.100s' is no device's UUID",
				share->devices[i].uuid);
	return 0;
}

/* Whether the library will read what is written. */
static int check_share(const struct share *share, struct err *err)
{
	char text[SHARE_FILE_BYTES];
	struct share_fault fault = {.why = "it is too long"};
	struct share again;
	size_t length;
	int r = check_devices(share, err);

	if (r < 0)
		return r;
	r = share_format(share, text, sizeof(text), &length);
	if (r == 0)
		r = share_parse(text, length, &again, &fault);
	if (r < 0 || !*share->slice)
		return err_set(err, EINVAL, "the container's share cannot be: %s",
			r < 0 ? fault.why : "it has no name");
	return 0;
}

/* The region is the one file that the container sees in HOOK. */
static int take_cache(const struct prepare_settings *settings, const struct share *share,
	char ret_cache[CONTAINER_CACHE_BYTES], struct err *err)
{
	size_t hook = strlen(settings->place.hook), length = strlen(share->region);
	const char *cache = share->region + hook + 1;

	if (length <= hook + 1 + strlen(CACHE_SUFFIX) ||
		strncmp(share->region, settings->place.hook, hook) || share->region[hook] != '/' ||
		strchr(cache, '/') || cache[0] == '.' ||
		strcmp(share->region + length - strlen(CACHE_SUFFIX), CACHE_SUFFIX) ||
		strlen(cache) >= CONTAINER_CACHE_BYTES)
		return err_set(err, EINVAL, "'%.200s' is no region in %.200s", share->region,
			settings->place.hook);
	strcpy(ret_cache, cache);
	return 0;
}

static int plan(const struct prepare_settings *settings, const struct prepare_request *request,
	struct kept *kept, struct err *err)
{
	int r;

	*kept = (struct kept){.container.share = *request->share};
	r = kept_key(request->pod_uid, request->container, kept->container.key);
	if (r < 0)
		return err_set(err, EINVAL,
			"'%.64s', '%.64s' are no pod's UID and container's name", request->pod_uid,
			request->container);
	snprintf(kept->pod_uid, sizeof(kept->pod_uid), "%s", request->pod_uid);
	snprintf(kept->pod_space, sizeof(kept->pod_space), "%s",
		request->pod_space ? request->pod_space : "");
	snprintf(kept->pod_name, sizeof(kept->pod_name), "%s",
		request->pod_name ? request->pod_name : "");
	snprintf(kept->version, sizeof(kept->version), "%s", settings->version);
	r = check_share(request->share, err);
	if (r == 0)
		r = take_cache(settings, request->share, kept->container.cache, err);
	return r < 0 ? r : read_boot(kept->boot, err);
}

__attribute__((format(printf, 2, 3))) static bool put(
	char to[CONTAINER_PATH_BYTES], const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(to, CONTAINER_PATH_BYTES, format, args);
	va_end(args);
	return length >= 0 && length < CONTAINER_PATH_BYTES;
}

static int list_paths(const struct prepare_settings *settings, const struct kept *kept,
	struct prepared *ret_prepared, struct err *err)
{
	const struct container_place *place = &settings->place;
	const struct container *c = &kept->container;
	struct prepared p = {.records = {{0}}};
	bool fits = put(p.preload, "%s/ld.so.preload", place->hook) &&
		    put(p.region_folder, "%s/containers/%s", place->hook, c->key) &&
		    container_region_path(place, c, p.region_file) == 0 &&
		    put(p.share_folder, "%s/%s", place->shares, c->key) &&
		    put(p.lock_folder, "%s", place->lock) &&
		    put(p.turns_folder, "%s", place->turns);

	library_path(place->hook, kept->version, p.library);
	for (unsigned i = 0; i < c->share.device_count && *place->turns; i++)
		fits &= put(p.records[i], "%s/%s/%s", place->turns, c->share.devices[i].uuid,
			c->share.slice);
	if (!fits)
		return err_set(err, ENAMETOOLONG, "the paths of the host's folders are too long");
	*ret_prepared = p;
	return 0;
}

/* Opens the folder and reads what is kept there of a container. What kept_key(), kept_open() and kept_read() say. */
static int read_kept(const struct prepare_settings *settings, const char *pod_uid,
	const char *container, struct kept_folder *ret_folder, struct kept *ret_kept)
{
	char key[CONTAINER_KEY_BYTES];
	struct err ignored = ERR_NULL;
	int r = kept_key(pod_uid, container, key);

	if (r == 0)
		r = kept_open(settings->state, ret_folder, &ignored);
	return r ? r : kept_read(ret_folder, key, ret_kept);
}

int prepare_find_unique(const struct prepare_settings *settings, const char *pod_uid,
	const char *container, char ret_unique[CONTAINER_CACHE_BYTES])
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct kept kept;

	if (read_kept(settings, pod_uid, container, &folder, &kept) < 0)
		return -ENOENT;
	snprintf(ret_unique, CONTAINER_CACHE_BYTES, "%.*s",
		(int)(strlen(kept.container.cache) - strlen(CACHE_SUFFIX)), kept.container.cache);
	return 0;
}

int prepare_container(const struct prepare_settings *settings,
	const struct prepare_request *request, struct prepared *ret_prepared, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	_cleanup_(flush_deinit) struct flush own = {.result = 0};
	struct flush *flush = request->flush ? request->flush : &own;
	struct prepared prepared;
	struct kept kept;
	int r = kept_open(settings->state, &folder, err);

	if (r == 0)
		r = plan(settings, request, &kept, err);
	if (r == 0)
		r = library_check(settings->place.hook, settings->version, err);
	if (r == 0)
		r = list_paths(settings, &kept, &prepared, err);
	if (r < 0)
		return r;
	r = kept_write(&folder, &kept, &flush->later);
	FAULT("prepare: kept");
	if (r == 0) {
		r = container_make(&settings->place, &kept.container, false, &flush->later, err);
		if (r < 0)
			return r;
		flush_begin(flush);
		r = request->flush ? 0 : flush_wait(flush);
	}
	if (r < 0)
		return err_set(err, -r, "keep %s in %.200s: %s", kept.container.key,
			settings->state, strerror(-r));
	*ret_prepared = prepared;
	return 0;
}

static int resize(struct share *share, const struct prepare_resized *resized, bool *ret_has_changed,
	struct err *err)
{
	*ret_has_changed = false;
	for (unsigned i = 0; i < resized->count; i++) {
		const struct share_device *wanted = &resized->devices[i];
		struct share_device *its = share->devices;

		while (its < share->devices + share->device_count &&
			strcmp(its->uuid, wanted->uuid) != 0)
			its++;
		if (its == share->devices + share->device_count || *share->mps)
			return err_set(err, EINVAL,
				"container %.63s has no slice of %.63s that can change",
				resized->container, wanted->uuid);
		if (its->memory_bytes == wanted->memory_bytes &&
			!memcmp(&its->compute, &wanted->compute, sizeof(its->compute)))
			continue;
		*its = *wanted;
		*ret_has_changed = true;
	}
	return 0;
}

int prepare_resize(const struct prepare_settings *settings, const struct prepare_resized *resized,
	bool *ret_has_changed, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct kept kept;
	int r = read_kept(settings, resized->pod_uid, resized->container, &folder, &kept);

	if (r < 0)
		return err_set(
			err, -r, "container %.63s was given no slice here", resized->container);
	r = resize(&kept.container.share, resized, ret_has_changed, err);
	if (r < 0 || !*ret_has_changed)
		return r;
	r = kept_write(&folder, &kept, NULL);
	FAULT("prepare: resized");
	if (r < 0)
		return err_set(err, -r, "keep %s in %.200s: %s", kept.container.key,
			settings->state, strerror(-r));
	return container_make(&settings->place, &kept.container, false, NULL, err);
}

int prepare_held_bytes(const struct prepare_settings *settings, const char *pod_uid,
	const char *container, const char *uuid, uint64_t *ret_bytes)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct kept kept;
	int r = read_kept(settings, pod_uid, container, &folder, &kept);

	return r ? r : container_held_bytes(&settings->place, &kept.container, uuid, ret_bytes);
}

struct restore {
	const struct prepare_settings *settings;
	const struct kept_folder *folder;
	struct flush flush;
	char boot[FILE_BOOT_BYTES];
	unsigned failed;
};

/*
 * A power cut has left an empty file of one whose Allocate was not answered: the kubelet does not know of it, and asks again
 * or gives its pod up.
 */
static bool drop_unanswered(const struct restore *restore, const char *key)
{
	struct container container = {.share = {.device_count = 0}};
	struct err err = ERR_NULL;

	if (!kept_is_empty(restore->folder, key))
		return false;
	snprintf(container.key, sizeof(container.key), "%s", key);
	return container_remove(&restore->settings->place, &container, &err) == 0 &&
	       kept_remove(restore->folder, key) == 0;
}

/* Nothing of a container whose JSON is broken can be made; the JSON is left for people to see. */
static int restore_one(void *context, const char *key, const struct kept *kept)
{
	struct restore *restore = context;
	struct err err = ERR_NULL;
	struct kept now;
	bool is_new_boot;
	int r;

	if (!kept && drop_unanswered(restore, key))
		return 0;
	if (!kept) {
		log_error("what was kept of a container is broken", STR("container", key));
		restore->failed++;
		return 0;
	}
	now = *kept;
	is_new_boot = strcmp(kept->boot, restore->boot);
	strcpy(now.boot, restore->boot);
	r = container_make(&restore->settings->place, &kept->container, is_new_boot, NULL, &err);
	FAULT("prepare: restored");
	/* Only now, so that a kill in between begins the books anew once more. */
	if (r == 0 && is_new_boot)
		r = kept_write(restore->folder, &now, &restore->flush.later);
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
	struct restore restore = {.settings = settings, .folder = &folder, .flush = {.result = 0}};
	int r = kept_open(settings->state, &folder, err);

	if (r == 0)
		r = container_check_place(&settings->place, err);
	if (r == 0)
		r = read_boot(restore.boot, err);
	if (r < 0)
		return r;
	r = kept_each(&folder, restore_one, &restore);
	flush_begin(&restore.flush);
	if (flush_wait(&restore.flush) && r == 0)
		r = -EIO;
	if (r < 0)
		return err_set(
			err, -r, "read %.300s/containers: %s", settings->state, strerror(-r));
	*ret_failed = restore.failed;
	return 0;
}

struct collect {
	const struct prepare_settings *settings;
	const struct kept_folder *folder;
	const struct prepare_pods *pods;
	int64_t now_s;
};

static bool is_listed(const char *const *uids, size_t count, const char *uid)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(uids[i], uid))
			return true;
	return false;
}

/* The kubelet's record has no UID. */
static bool is_in_record(const struct prepare_pods *pods, const struct kept *kept)
{
	for (size_t i = 0; i < pods->name_count; i++)
		if (!*kept->pod_name || (!strcmp(pods->names[i].space, kept->pod_space) &&
						!strcmp(pods->names[i].name, kept->pod_name)))
			return true;
	return false;
}

static bool is_wanted(const struct collect *collect, const struct kept *kept)
{
	const struct prepare_pods *pods = collect->pods;

	return is_listed(pods->uids, pods->uid_count, kept->pod_uid) || is_in_record(pods, kept) ||
	       container_is_running(&collect->settings->place, &kept->container);
}

/* One that seems to come from the future, because the clock was set back, is young, too. */
static bool is_young(const struct collect *collect, const struct kept *kept)
{
	return collect->now_s - kept->wanted_s < PREPARE_YOUNG_S;
}

static int collect_one(void *context, const char *key, const struct kept *kept)
{
	const struct collect *collect = context;
	const struct container_place *place = &collect->settings->place;
	struct err err = ERR_NULL;
	int r;

	if (!kept)
		return 0;
	container_trim(place, &kept->container);
	if (is_wanted(collect, kept)) {
		r = kept_touch(collect->folder, key);
		if (r < 0)
			log_warn("when a container was wanted last is not kept",
				STR("container", key), STR("why", strerror(-r)));
		return 0;
	}
	if (is_young(collect, kept))
		return 0;
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

int prepare_collect(
	const struct prepare_settings *settings, const struct prepare_pods *pods, struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct collect collect = {settings, &folder, pods, (int64_t)time(NULL)};
	int r = kept_open(settings->state, &folder, err);

	if (r < 0)
		return r;
	r = folder_sweep(folder.folder_fd);
	if (r == 0)
		r = kept_each(&folder, collect_one, &collect);
	if (r < 0)
		return err_set(
			err, -r, "read %.300s/containers: %s", settings->state, strerror(-r));
	return library_collect(
		settings->state, settings->place.hook, settings->version, &folder, err);
}

struct clients {
	const struct prepare_settings *settings;
	const char *const *pod_uids; /* NULL: every pod may be */
	size_t count;
	void (*found)(void *context, const char *uuid);
	void *context;
};

static int take_client(void *context, const char *key, const struct kept *kept)
{
	const struct clients *clients = context;

	if (kept && *kept->container.share.mps &&
		(!clients->pod_uids ||
			is_listed(clients->pod_uids, clients->count, kept->pod_uid) ||
			container_is_running(&clients->settings->place, &kept->container)))
		clients->found(clients->context, kept->container.share.devices[0].uuid);
	return 0;
}

int prepare_each_client(const struct prepare_settings *settings, const char *const *pod_uids,
	size_t count, void (*found)(void *context, const char *uuid), void *context,
	struct err *err)
{
	_cleanup_(kept_close) struct kept_folder folder = KEPT_FOLDER_NULL;
	struct clients clients = {settings, pod_uids, count, found, context};
	int r = kept_open(settings->state, &folder, err);

	if (r == 0)
		r = kept_each(&folder, take_client, &clients);
	return r;
}
