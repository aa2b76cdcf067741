/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container mounts of its own over what its limits are made of.
 *
 * The kubelet mounts what a pod says after what the device plugin says, so a volume at the share's path would be the share. One
 * above it is writable, and may be another container's, too: who removes the mount point in it takes the mount away.
 */
#pragma once

#include <jansson.h>

#include "base/bits.h"

/*
 * The first of the container's own paths that is at, above or below such a path; NULL: there is none. hook: HOOK_PATH. The
 * caller frees it. -ENOMEM.
 */
int cover_find(const json_t *container, const char *hook, char **ret_path) MUST_CHECK;
