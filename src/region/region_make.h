/* SPDX-License-Identifier: Apache-2.0 */
/* A region file is made: for region.c. */
#pragma once

#include <sys/types.h>

#include "base/bits.h"

/*
 * Makes a region of that mode, which has its name when it is whole; that another was faster is fine. REGION_E_REMOTE, or -errno, and then
 * nothing is left.
 */
int region_make(const char *path, mode_t mode) MUST_CHECK;
