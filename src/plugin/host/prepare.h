/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container's limits need on the host: made before it starts, kept while its pod lives, made again after a
 * restart of the machine, removed when the pod has gone.
 *
 * The state is in files alone (docs/plugin.md), so a plugin that is killed anywhere, or two at once, leave nothing half
 * made: each function may be called again at any time, and goes on where another has stopped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "node/container.h"
#include "plugin/host/flush.h"
#include "policy/share.h"

/*
 * How long a container's files stay when its pod is nowhere: the list may be older than the container, and of a
 * pod that was deleted by force the kubelet may not have ended it yet, which must not lose its share meanwhile.
 */
#define PREPARE_YOUNG_S 300

struct prepare_settings {
	struct container_place
		place; /* all paths are the same on the host and in the plugin's own container */
	const char *
		state; /* "/var/lib/cantaloupe": on a file system that outlives a restart of the machine */
	const char *version; /* of the library that new containers get: VGPU_VERSION */
};

/* The share is whole: its slice's name, and its region, HOOK/<unique>.cache, as the container sees it (plugin/grant/grant.h). */
struct prepare_request {
	const char *pod_uid, *container;  /* as Kubernetes has them */
	const char *pod_space, *pod_name; /* NULL: they are not known */
	const struct share *share;
	struct flush *flush; /* NULL: it is waited for */
};

/* Paths on the host, for struct grant_paths; "" where there is none. */
struct prepared {
	char library[CONTAINER_PATH_BYTES], preload[CONTAINER_PATH_BYTES];
	char region_folder[CONTAINER_PATH_BYTES], region_file[CONTAINER_PATH_BYTES];
	char share_folder[CONTAINER_PATH_BYTES], lock_folder[CONTAINER_PATH_BYTES];
	char turns_folder[CONTAINER_PATH_BYTES];
	char records[SHARE_DEVICES][CONTAINER_PATH_BYTES]; /* of the share's i-th device */
};

/*
 * The <unique> of the region that the container was prepared with, for a second call to have the same. -ENOENT where it is
 * not known.
 */
int prepare_find_unique(const struct prepare_settings *settings, const char *pod_uid,
	const char *container, char ret_unique[CONTAINER_CACHE_BYTES]) MUST_CHECK;

/*
 * Makes all that the container's mounts name, and keeps what is needed to make it again. A second call for the same
 * container replaces the share of the first; a region of the same name stays. -EINVAL where a name or the share
 * cannot be, -ENOENT where the library is not installed, and what the file system says; err is set.
 */
int prepare_container(const struct prepare_settings *settings,
	const struct prepare_request *request, struct prepared *ret_prepared,
	struct err *err) MUST_CHECK;

/* A device has other amounts from now on. */
struct prepare_resized {
	const char *pod_uid, *container;
	const struct share_device *devices;
	unsigned count;
};

/*
 * Writes the share of a container that was prepared anew, where it is another; what processes have mounted follows. -ENOENT
 * where the container is not known, -EINVAL where it has no such device; err is set.
 */
int prepare_resize(const struct prepare_settings *settings, const struct prepare_resized *resized,
	bool *ret_has_changed, struct err *err) MUST_CHECK;

/*
 * What the processes of a container's slice hold of a device, and descriptors keep, by its books; 0 where no process has begun
 * to use it. -ENOENT where the container is not known; what the file system says, or an outcome of region_open(), where its books
 * cannot be read.
 */
int prepare_held_bytes(const struct prepare_settings *settings, const char *pod_uid,
	const char *container, const char *uuid, uint64_t *ret_bytes) MUST_CHECK;

/*
 * Makes again what is missing of all containers that are known, for a plugin's start: the kubelet does not ask again for a
 * container that it starts again. One that fails is said in the log and does not keep the others back.
 * *ret_failed counts them.
 */
int prepare_restore(
	const struct prepare_settings *settings, unsigned *ret_failed, struct err *err) MUST_CHECK;

/*
 * Calls found() with the device of each container that is a client of a daemon of NVIDIA's Multi-Process Service, and
 * whose pod is in the list (NULL: every pod may be) or in which a process of its slice lives.
 */
int prepare_each_client(const struct prepare_settings *settings, const char *const *pod_uids,
	size_t count, void (*found)(void *context, const char *uuid), void *context,
	struct err *err) MUST_CHECK;

/* The pods of this node: every one that may still have a process. */
struct prepare_pods {
	const char *const *uids; /* in the API server's list */
	size_t uid_count;
	const struct prepare_name {
		const char *space, *name;
	} * names; /* in the kubelet's record, and not in the list */
	size_t name_count;
};

/*
 * Removes what belongs to pods that are not among these, and were not for PREPARE_YOUNG_S, since a call with them or
 * prepare_container(); prepare_restore() counts in the first start after one of the machine alone. A container
 * in which a process of its slice lives stays. Where a name is given, so does one whose pod's name is not known. Files that
 * tenants have made too large are cut. One that fails keeps no other back.
 */
int prepare_collect(const struct prepare_settings *settings, const struct prepare_pods *pods,
	struct err *err) MUST_CHECK;
