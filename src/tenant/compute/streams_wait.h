/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for streams: what they tell of the ends of work. With the meter's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

struct meter;
struct stream_state;

/* This thread is about to wait for the work of the context, or, NULL, for something in the stream that it used last. */
void streams_wait_begins(struct meter *meter, CUcontext context, uint64_t now_ns);

/* A wait for all work of the context that began at since_ns has ended. */
void streams_waited(struct meter *meter, CUcontext context, uint64_t since_ns, uint64_t now_ns);

/* The stream of the meter that this thread used last, if nothing there is under way; else NULL. */
struct stream_state *streams_recent_if_done(const struct meter *meter);
