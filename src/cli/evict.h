/* SPDX-License-Identifier: Apache-2.0 */
/* Moving the device memory of a suspended slice's processes to the host, and back. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "cli/edit.h"

/* The libraries to ask; NULL: the machine's own. */
struct evict_libraries {
	const char *cuda, *nvml;
};

/*
 * Both act on the region in the slice's folder alone, and on processes that are the slice's by more than the region's
 * word (evictee_check()).
 *
 * Moves it away: all of it or, with err saying of which process and why, nothing. The caller holds
 * SLICE_LOCK_EVICT, and has suspended the slice.
 */
int evict_slice(const struct edit *slice, const struct evict_libraries *libraries,
	struct err *err) MUST_CHECK;

/*
 * Moves it back: nothing where a device has no room for all, by NVML. Where it fails later, of one process, the
 * others come back all the same, and err says of the first that did not. Those stay away, to be tried again;
 * one that the driver has given up fails each time, until it ends.
 */
int evict_restore(const struct edit *slice, const struct evict_libraries *libraries,
	struct err *err) MUST_CHECK;
