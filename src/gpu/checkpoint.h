/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's checkpoints of other processes, called from a process that does nothing else with it. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/abi/cuda.h"
#include "gpu/driver.h"

#define CHECKPOINT_FUNCTIONS(X)          \
	X(cuInit)                        \
	X(cuGetErrorName)                \
	X(cuCheckpointProcessGetState)   \
	X(cuCheckpointProcessLock)       \
	X(cuCheckpointProcessCheckpoint) \
	X(cuCheckpointProcessRestore)    \
	X(cuCheckpointProcessUnlock)

struct checkpoint {
#define X(symbol) symbol##_fn *symbol;
	CHECKPOINT_FUNCTIONS(X)
#undef X
};

/*
 * Starts the driver, which the caller has loaded. -ENOSYS where it has no checkpoints, -EIO where it does not
 * start; with err set. The library stays loaded: a driver that was started has threads and handlers of its own.
 */
int checkpoint_start(void *library, driver_lookup_fn *lookup, struct checkpoint *ret_checkpoint,
	struct err *err) MUST_CHECK;

/* Sets err to what was tried and the driver's name of the result, and returns -EIO. */
int checkpoint_explain(
	const struct checkpoint *checkpoint, const char *what, CUresult result, struct err *err);
