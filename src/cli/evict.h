/* SPDX-License-Identifier: Apache-2.0 */
/* Moving the device memory of a suspended slice's processes to the host, and back. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"

/* The libraries to ask; NULL: the machine's own. */
struct evict_libraries {
	const char *cuda, *nvml;
};

/*
 * Moves it away: all of it or, with err saying of which process and why, nothing. The caller holds
 * SLICE_LOCK_EVICT, and has suspended the slice.
 */
int evict_slice(int folder_fd, const char *region, const struct evict_libraries *libraries,
	struct err *err) MUST_CHECK;

/*
 * Moves it back: nothing where a device has no room for all, by NVML. Where it fails later, of one process, the
 * others come back all the same, and err says of the first that did not. Those stay away, to be tried again;
 * one that the driver has given up fails each time, until it ends.
 */
int evict_restore(int folder_fd, const char *region, const struct evict_libraries *libraries,
	struct err *err) MUST_CHECK;
