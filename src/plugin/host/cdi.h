/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The specification of the Container Device Interface by which runtimes know the node's devices, for the strategies
 * cdi-annotations and cdi-cri: each device by its name in the answer, and for all of them the driver's own files.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/inventory.h"
#include "plugin/host/capability.h"

#define CDI_FOLDER "/var/run/cdi"
#define CDI_VENDOR "k8s.device-plugin.nvidia.com"
#define CDI_KIND   CDI_VENDOR "/gpu"
#define CDI_FILE   CDI_VENDOR "-gpu.json"

/* What containers get beside their devices, each a kind of its own with one device, "all". */
enum cdi_extra { CDI_GDRCOPY = 1, CDI_GDS = 2, CDI_MOFED = 4 };

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
	const char *hook;	  /* nvidia-ctk on the host; "": links are made as mounts instead */
	bool has_indexes;	  /* devices are named by index, not by UUID */
	unsigned extras;	  /* bits of enum cdi_extra */
	const unsigned *channels; /* of IMEX; of the kind imex-channel those that are there */
	unsigned channel_count;
	const struct inventory *devices;
	const struct cdi_part *parts; /* that there are now */
	unsigned part_count;
};

/*
 * Writes it by rename; a runtime never reads half of it. -ENOENT where the driver's libcuda.so.VERSION is not found, so that
 * no container starts that could not use its devices; and where an extra has no file. -errno with err set.
 */
int cdi_write(const struct cdi_request *request, struct err *err) MUST_CHECK;
