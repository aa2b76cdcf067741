/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program that run when a stream gets there. */
#pragma once

#include <stdint.h>

#include "gpu/abi/cuda.h"

struct context;
struct stream;

/* Runs fn on a thread of the driver when the stream gets there. */
CUresult callback_add(struct stream *stream, CUhostFn fn, CUstreamCallback callback,
	void *user_data, CUstream handle);

/* What a stream waits for: a word of memory against a value; flags is CUstreamWaitValue_flags. */
struct callback_word {
	uintptr_t address;
	uint64_t value;
	unsigned int bytes; /* 4 or 8 */
	unsigned int flags;
};

/* The stream and what is waiting in it go on when the word is so. */
CUresult callback_await(struct stream *stream, const struct callback_word *word);

/* Forgets the callbacks of a context that ends; waits for one that runs. */
void callback_cancel(struct context *context);
/* Waits until no callback of the stream (NULL: of the context) is left. */
void callback_wait(struct context *context, struct stream *stream);

/* Waits for the stream's work and callbacks (stream NULL: of the whole context). */
void callback_wait_all(struct context *context, struct stream *stream);
