/* SPDX-License-Identifier: Apache-2.0 */
/* The files by which the kernel lets a process use an instance of a GPU: /dev/nvidia-caps/nvidia-cap<number>. */
#pragma once

#include "base/bits.h"
#include "base/err.h"

#define CAPABILITY_PATH "/proc/driver/nvidia-caps/mig-minors"

struct capability {
	int instance, compute; /* numbers of the two files; below 0: the kernel has none */
};

/*
 * Of the instance of the GPU /dev/nvidia<minor>. A kernel that has no such files at all says so for none; one that has them,
 * and not for this instance, is -ENOENT with err set: a container could not use it.
 */
int capability_find(const char *path, unsigned minor, unsigned instance, unsigned compute,
	struct capability *ret_capability, struct err *err) MUST_CHECK;
