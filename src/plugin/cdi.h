/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The specification of the Container Device Interface by which runtimes know the node's devices, for the strategies
 * cdi-annotations and cdi-cri: each device by its name in the answer, and for all of them the driver's own files.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/inventory.h"
#include "plugin/capability.h"

#define CDI_FOLDER "/var/run/cdi"
#define CDI_KIND   "k8s.device-plugin.nvidia.com/gpu"
#define CDI_FILE   "k8s.device-plugin.nvidia.com-gpu.json"

/* An instance of a device. */
struct cdi_part {
	const char *uuid;
	unsigned minor; /* of the device */
	struct capability capability;
};

struct cdi_request {
	const char
		*state; /* of struct prepare_settings: its lock lets one plugin write at a time */
	const char *folder;	      /* CDI_FOLDER */
	const char *driver_root;      /* on the host, and */
	const char *driver_root_here; /* where it is for this program */
	const char *dev_root;	      /* on the host; "": the driver's */
	const char *hook; /* nvidia-ctk on the host; "": links are made as mounts instead */
	bool has_indexes; /* devices are named by index, not by UUID */
	const struct inventory *devices;
	const struct cdi_part *parts; /* that there are now */
	unsigned part_count;
};

/*
 * Writes it by rename; a runtime never reads half of it. -ENOENT where the driver's libcuda.so.VERSION is not found, so that
 * no container starts that could not use its devices. -errno with err set.
 */
int cdi_write(const struct cdi_request *request, struct err *err) MUST_CHECK;
