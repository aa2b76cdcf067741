/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's configuration: device-config.yaml, what differs on this node, flags and environment in one struct.
 *
 * It is made whole or not at all, so whoever has one keeps it where a changed file is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/inventory.h"
#include "plugin/config/flags.h"

#define CONFIG_FILE_BYTES (1u << 20) /* the longest file; a ConfigMap has no more */
#define CONFIG_SPLIT_MOST 1000	     /* slices of one device; the kubelet keeps a text for each */
#define CONFIG_IMEX_MOST  16

enum config_mode { CONFIG_HAMI_CORE, CONFIG_MIG, CONFIG_MPS, CONFIG_MODES };
enum config_mig { CONFIG_MIG_NONE, CONFIG_MIG_SINGLE, CONFIG_MIG_MIXED };
enum config_id { CONFIG_ID_UUID, CONFIG_ID_INDEX };
enum config_core_policy { CONFIG_CORES_DEFAULT, CONFIG_CORES_FORCE, CONFIG_CORES_DISABLE };

/* How the runtime learns which devices a container has: any of these at once. */
enum config_list {
	CONFIG_LIST_ENVVAR = 1,
	CONFIG_LIST_VOLUME_MOUNTS = 2,
	CONFIG_LIST_CDI_ANNOTATIONS = 4,
	CONFIG_LIST_CDI_CRI = 8,
	CONFIG_LIST_ANY_CDI = CONFIG_LIST_CDI_ANNOTATIONS | CONFIG_LIST_CDI_CRI,
};

/* Devices of this node that an entry names. */
struct config_devices {
	const char **uuids;
	int64_t *indexes;
	size_t uuid_count, index_count;
};

/* One entry of migProfileAllowlist; lists end with NULL. */
struct config_profiles {
	const char **models, **profiles;
};

struct config {
	/* flags.def; a text is never NULL */
	const char *config_file, *node_config_file, *node_name, *hook_path, *kubelet_socket;
	const char *driver_root, *dev_root, *driver_root_here, *cdi_prefix, *cdi_hook;
	const char *health_ignores, *health_heeds;
	const char *state_folder, *library, *mps_control;
	unsigned mig_strategy, device_id, discovery; /* of enum config_mig, config_id */
	unsigned verbosity;
	bool fails_on_init_error, passes_device_files, has_gdrcopy, has_gds, has_mofed;
	bool is_imex_required, has_pair_scores;
	unsigned device_lists; /* bits of enum config_list */
	unsigned imex_channels[CONFIG_IMEX_MOST], imex_channel_count;

	/* keys.def */
	const char *resource_count, *resource_memory, *resource_memory_percentage, *resource_cores,
		*resource_priority;
	const char *library_log_level, *runtime_class;
	bool overwrites_environment, has_numa_topology, is_core_limit_disabled;
	int64_t default_memory_mib, default_cores, default_count, memory_factor;
	int64_t split_count, preconfigured_memory_mib;
	double memory_scaling, cores_scaling;
	unsigned core_policy; /* of enum config_core_policy */
	struct config_profiles *profiles;
	size_t profile_count;

	/* of this node alone */
	unsigned mode; /* of enum config_mode, of devices that no list below has */
	bool has_preferred_allocation;
	struct config_devices filtered, of_mode[CONFIG_MODES];

	/* ours: section `cantaloupe` */
	bool requires_lock;	      /* a pod without the node's lock is served nothing */
	bool trusts_assignments;      /* also where they give more than the container asks for */
	bool honours_disable_control; /* CUDA_DISABLE_CONTROL keeps the library out of a container */
	bool allows_exports;	      /* containers may give out descriptors of device memory */
	bool allows_imports; /* containers may open handles that no process of their slice gave out */
	bool resizes_beyond_limits; /* a slice may become larger than its container asks for */
	const char *turns_folder, *mps_folder; /* on the host */

	/* of what flags.def has as texts */
	const char *device_list_text, *imex_text, *has_topology_score, *split_text, *resource_text;
	struct config_text *texts; /* what the pointers above point into */
};

/* The two files as texts; NULL: there is none. Their names are for messages. */
struct config_files {
	const char *device_text, *node_text;
	size_t device_bytes, node_bytes;
};

/*
 * Reads the files that the flags name and makes the configuration of them. The flags' texts must live as long. -EINVAL
 * with err set, which names the file, the line where there is one, and the key; -ENOMEM.
 */
int config_load(const struct flags *flags, struct config **ret_config, struct err *err) MUST_CHECK;

/* The same of texts that were read already. */
int config_read(const struct flags *flags, const struct config_files *files,
	struct config **ret_config, struct err *err) MUST_CHECK;

enum {
	_CONFIG_E_SUCCESS = 0,
	CONFIG_E_OTHER, /* more is different than can change under way */
};

/*
 * Takes over what may change under way: numbers, switches and words. CONFIG_E_OTHER where anything else is different, and then
 * nothing is taken over; -ENOMEM.
 */
int config_absorb(struct config *config, const struct config *fresh) MUST_CHECK;

/* Accepts NULL. */
void config_free(struct config *config);

/* Whether the device is none of this plugin's (filterdevices). */
bool config_is_filtered(const struct config *config, const struct inventory_device *device);

/* How the device is divided: by the list that names it, else as the node's devices are. */
enum config_mode config_mode_of(const struct config *config, const struct inventory_device *device);

/* What the scheduler is told of the device's memory; 0: nobody knows it. */
uint64_t config_memory_mib(const struct config *config, const struct inventory_device *device);

/* "hami-core", "mig", "mps". */
extern const char *const config_mode_names[CONFIG_MODES];
