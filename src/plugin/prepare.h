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

#include "base/bits.h"
#include "base/err.h"
#include "node/container.h"
#include "policy/share.h"

#define PREPARE_MOUNTS (7 + SHARE_DEVICES)

/* How long a container that was just prepared stays, whatever the list of pods says: the list may be older. */
#define PREPARE_YOUNG_S 300

struct prepare_settings {
	struct container_place
		place; /* all paths are the same on the host and in the plugin's own container */
	const char *
		state; /* "/var/lib/cantaloupe": on a file system that outlives a restart of the machine */
	const char *version; /* of the library that new containers get: VGPU_VERSION */
};

struct prepare_request {
	const char *pod_uid, *container; /* as Kubernetes has them */
	struct share
		grant; /* the devices, by UUID, and the priority; names and paths are set here */
	bool is_uncontrolled; /* the library is not loaded before all others: no mount of /etc/ld.so.preload */
};

struct prepare_mount {
	char to[CONTAINER_PATH_BYTES],
		from[CONTAINER_PATH_BYTES]; /* in the container, on the host */
	bool is_read_only;
};

/* The mounts in an order in which each comes after those above it. */
struct prepared {
	char slice[SHARE_NAME_BYTES];
	char cache
		[SHARE_PATH_BYTES]; /* the region as the container sees it: CUDA_DEVICE_MEMORY_SHARED_CACHE */
	struct prepare_mount mounts[PREPARE_MOUNTS];
	unsigned mount_count;
};

/*
 * Makes all that the container's mounts name, and keeps what is needed to make it again. A second call for the same
 * container has the same names; another grant replaces the first. -EINVAL where a name or the grant cannot be, -ENOENT
 * where the library is not installed, and what the file system says; err is set, and nothing is handed out.
 */
int prepare_container(const struct prepare_settings *settings,
	const struct prepare_request *request, struct prepared *ret_prepared,
	struct err *err) MUST_CHECK;

/*
 * Makes again what is missing of all containers that are known, for a plugin's start: the kubelet does not ask again for a
 * container that it starts again. One that fails is said in the log and does not keep the others back.
 * *ret_failed counts them.
 */
int prepare_restore(
	const struct prepare_settings *settings, unsigned *ret_failed, struct err *err) MUST_CHECK;

/*
 * Removes what belongs to pods that are not in the list, which must have every pod of this node that may still have a
 * process. What was made less than PREPARE_YOUNG_S ago stays, and so does a container in which a process of its slice
 * lives. Files that tenants have made too large are cut to their size.
 */
int prepare_collect(const struct prepare_settings *settings, const char *const *pod_uids,
	size_t count, struct err *err) MUST_CHECK;
