/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device was given while nothing was metered, and has not done when that changes. Launches cost nothing until then, so
 * nothing is known of them; but it is known which contexts there are, and which streams.
 */
#pragma once

#include "gpu/abi/cuda.h"

void backlog_context_made(CUcontext context);
void backlog_context_ended(CUcontext context);

/* After the driver has made a stream in the current context, and before it ends one. */
void backlog_stream_made(CUstream stream);
void backlog_stream_ends(CUstream stream);

/* Work is metered from now on: what lies in the contexts of meters whose limits say so (is_backlogged) is found. Not with a lock. */
void backlog_find(void);

/* For a child of fork(). */
void backlog_reset_after_fork(void);
