/* SPDX-License-Identifier: Apache-2.0 */
/* Moving the device memory of a suspended slice's processes to the host, and back. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"

/*
 * Moves it away: all of it or, with err saying of which process and why, nothing. library is the driver's
 * path, or NULL for the machine's own. The caller holds SLICE_LOCK_EVICT, and has suspended the slice.
 */
int evict_slice(int folder_fd, const char *region, const char *library, struct err *err) MUST_CHECK;

/*
 * Moves it back. Where that fails, processes that were brought back before stay so, and the others stay
 * away: to be tried again.
 */
int evict_restore(
	int folder_fd, const char *region, const char *library, struct err *err) MUST_CHECK;
