/* SPDX-License-Identifier: Apache-2.0 */
/* When the slices of containers have lost their last process: told beside their shares (node/container_end.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "plugin/host/prepare.h"

/* By so much an end may be seen late: what a slice owes others for that is paid in the ten seconds of a kubelet's pause. */
#define ENDS_LOOK_NS UINT64_C(250000000)

/* More slices than that are not looked at: each takes a descriptor. */
#define ENDS_SLICES 512

/* Looks between two at the list of containers, and at the names of their regions: in between, descriptors are asked. */
#define ENDS_LIST_LOOKS 4
#define ENDS_OPEN_LOOKS 16

/* All but the settings, which are the caller's, is zero at the start. */
struct ends {
	const struct prepare_settings *settings;
	struct container_end *slices;
	size_t count;
	unsigned looks;
	uint64_t listed_ns; /* the time of change of the folder that was listed */
};

/* Looks once; to be called each ENDS_LOOK_NS. */
void ends_look(struct ends *ends);

void ends_deinit(struct ends *ends);
