/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program that run when a stream gets there. */
#pragma once

#include "gpu/abi/cuda.h"

struct context;
struct stream;

/* Runs fn on a thread of the driver when the stream gets there. 0 or -errno. */
int callback_add(struct stream *stream, CUhostFn fn, CUstreamCallback callback, void *user_data,
	CUstream handle);
/* Forgets the callbacks of a context that ends; waits for one that runs. */
void callback_cancel(struct context *context);
/* Waits until no callback of the stream (NULL: of the context) is left. */
void callback_wait(struct context *context, struct stream *stream);

/* Waits for the stream's work and callbacks (stream NULL: of the whole context). */
void callback_wait_all(struct context *context, struct stream *stream);
