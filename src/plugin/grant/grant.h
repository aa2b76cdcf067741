/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one container is granted: of the node's devices, the scheduler's assignment and the configuration to a share, and
 * with what was made ready on the host to the answer that the kubelet gets.
 *
 * Nothing here reads a file, a clock or the network. First grant_plan(), then the caller makes ready on the host
 * what grant_paths names, with the share written into its folder, then grant_answer().
 */
#pragma once

#include <device_plugin.pb-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "gpu/inventory.h"
#include "kube/assignment.h"
#include "plugin/config/config.h"
#include "plugin/host/capability.h"
#include "policy/share.h"

#define GRANT_UNIQUE_BYTES 37 /* "6ead0f30-affc-4ab6-937a-e6cb37978d76" */
#define GRANT_ID_BYTES	   128
#define GRANT_SHARE_FOLDER "/etc/vgpu"	   /* in the container */
#define GRANT_MPS_FOLDER   "/run/vgpu-mps" /* the pipes of the MPS daemon */
#define GRANT_LOCK_FOLDER  "/tmp/vgpulock"
#define GRANT_TURNS_FOLDER "/run/vgpu-turns"
#define GRANT_PRELOAD	   "/etc/ld.so.preload"
#define GRANT_NOT_GIVEN	   (-1)

/* What a container asks for of each device; below 0: it does not say. */
struct grant_asked {
	int64_t memory_mib, memory_percent, cores_percent;
};

/* What of the pod bears on the container. */
struct grant_container {
	const char *pod_uid, *name;
	int64_t priority; /* limits of the priority resource; GRANT_NOT_GIVEN */
	const char
		*disable_control; /* the value of CUDA_DISABLE_CONTROL in its own list; or NULL */
	const struct grant_asked *asked; /* NULL: it is not looked at */
	const char *
		covering; /* a path of its own over its limits' (plugin/grant/cover.h); NULL: none */
};

/* The node as it is now. */
struct grant_node {
	const struct config *config;
	const struct inventory *inventory;
	uint64_t unhealthy; /* bit i: the inventory's i-th device is not to be handed out */
	bool has_turns;	    /* the folder for turns is there; without it cores are the cap, too */
};

/* An instance of a device. */
struct grant_part {
	const char *uuid; /* "MIG-..."; NULL: the device is whole */
	struct capability capability;
};

struct grant_device {
	const struct inventory_device *device; /* in the node's inventory */
	struct grant_part part;
	uint64_t memory_mib;
	unsigned cores_percent; /* 0: no limit */
};

struct grant {
	/* in NVML's order, which is the order in which a container sees them; each once, but for parts, in the slot's order */
	struct grant_device devices[SHARE_DEVICES];
	unsigned device_count;
	bool is_of_parts; /* then there is no slice: nothing below but `unique` is set */
	char slice[SHARE_NAME_BYTES]; /* the slice's name, and that of its turn records */
	char folder
		[SHARE_PATH_BYTES]; /* "<pod UID>_<container>", as HAMi names a region's folder */
	char library[SHARE_PATH_BYTES]; /* paths in the container: HOOK_PATH/vgpu/libvgpu.so, */
	char region[SHARE_PATH_BYTES];	/* and HOOK_PATH/vgpu/<unique>.cache */
	char unique[GRANT_UNIQUE_BYTES];
	bool is_mps;	  /* a client of its device's MPS daemon */
	bool has_library; /* false where CUDA_DISABLE_CONTROL keeps it out */
	struct share share;
};

/*
 * Decides what the container gets. `ids` are what the kubelet chose: only their number counts, because the slot says
 * which devices; `unique` is a text that no other container of the node has (grant_draw_unique()).
 * -EINVAL with err set, a sentence for the pod's status.
 */
int grant_plan(const struct grant_node *node, const struct grant_container *container,
	const struct assignment_slot *slot, char *const *ids, size_t id_count, const char *unique,
	struct grant *ret_grant, struct err *err) MUST_CHECK;

/* Whether a device of a slice that runs can become what is wanted. -EINVAL with err set, a sentence for the pod. */
int grant_check_resized(const struct grant_node *node, const struct grant_asked *asked,
	const struct assignment_device *wanted, struct err *err) MUST_CHECK;

/* A device's line in the share of a slice that takes turns or not. */
struct share_device grant_resized(
	const struct grant_node *node, const struct assignment_device *wanted, bool has_turns);

/* Whether the slot's devices are in mode mig, by the first of them. */
bool grant_is_of_parts(const struct grant_node *node, const struct assignment_slot *slot);

/* The same for such a slot; which part of each device it is, the caller adds. */
int grant_plan_parts(const struct grant_node *node, const char *container,
	const struct assignment_slot *slot, size_t id_count, struct grant *ret_grant,
	struct err *err) MUST_CHECK;

/*
 * What was made ready, as paths on the host. NULL is what there is none of; library, preload, region_folder and
 * share_folder must be there.
 */
struct grant_paths {
	const char *library;	   /* the file, by its version's name */
	const char *preload;	   /* a file that names the library as the container sees it */
	const char *region_folder; /* holds nothing but this slice's region */
	const char *
		region_file; /* in it, already made: mounted on its own, nobody in the container can remove it, and the folder is read-only */
	const char *share_folder; /* holds the file `share`, and nothing that must not be seen */
	const char *lock_folder;  /* /tmp/vgpulock, and then read-only */
	const char *turns_folder; /* read-only in the container */
	const char *records
		[SHARE_DEVICES]; /* of grant.devices[i]: the slice's own turn record, writable */
	const char *mps_pipe,
		*mps_memory; /* of a client of MPS: the daemon's folder of pipes, and its /dev/shm */
	const char *license, *validator;

	/* that are there on this node */
	const char *const *control_files; /* /dev/nvidiactl and others; ends with NULL */
	size_t control_file_count;
	const unsigned *imex_channels;
	size_t imex_channel_count;
};

/*
 * The answer for one container, as messages that v1beta1__container_allocate_response__free_unpacked() frees.
 * -EINVAL with err set where a needed path is missing; -ENOMEM.
 */
int grant_answer(const struct grant_node *node, const struct grant *grant,
	const struct grant_paths *paths, V1beta1__ContainerAllocateResponse **ret_answer,
	struct err *err) MUST_CHECK;

/* A random text of the form of a UUID of version 4. */
void grant_draw_unique(char ret_unique[GRANT_UNIQUE_BYTES]);

/* How long the device's UUID at the beginning of a kubelet's ID is: "<UUID>-<i>" or "<UUID>::<i>". */
size_t grant_id_device(const char *id);
