/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of slices of vgpu run. */
#pragma once

#include <sys/types.h>

#include "base/bits.h"
#include "node/sites.h"

/* Adds every slice below the folders of all users, as far as they may be read. 0 or -ENOMEM. */
int site_folders_add(struct sites *s) MUST_CHECK;

/* Those below one folder; one that is not there, not ours to read or not its owner's has none. 0 or -ENOMEM. */
int site_folders_add_root(struct sites *s, const char *root, uid_t owner) MUST_CHECK;
