/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and which one is current in a thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/driver.h"
#include "sim/cuda/heap.h"
#include "sim/cuda/timeline.h"

#define CONTEXT_MAGIC  0x43545831u
#define CONTEXT_LIMITS 7

struct module;

/*
 * Never freed: a thread may have a destroyed context current and must be told so. The primary
 * context of a device is one object for ever, alive or not.
 */
struct context {
	uint32_t magic;
	bool is_primary;
	int is_alive; /* read without a lock */
	unsigned int flags;
	unsigned int api_version;
	unsigned long long id;
	struct device *device;
	struct heap heap;	   /* under memory_lock */
	struct timeline timeline;  /* under device->time_lock */
	struct module *modules;	   /* under memory_lock */
	uint64_t stream_bytes;	   /* taken by streams, until the context ends; under memory_lock */
	uint64_t graph_bytes;	   /* taken for nodes of graphs, likewise */
	uint64_t graph_code_bytes; /* what those nodes would fill */
	size_t limit[CONTEXT_LIMITS];
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	struct context *next; /* of all contexts ever */
};

/* The calling thread's current context if it is alive. 201 without one, 709 when destroyed. */
CUresult context_current(struct context **ret_context);

/* A context from the program: 201 for what is none, 709 when destroyed. NULL means current. */
CUresult context_check(CUcontext handle, struct context **ret_context);

/* The default stream of the calling thread in `context`; NULL without memory. */
struct stream *context_thread_stream(struct context *context);

/*
 * The current context and the stream that a handle means in it; CUDA_ERROR_INVALID_HANDLE when it
 * means none. A stream of another context is right too: it brings its own.
 */
CUresult context_stream(
	CUstream handle, bool is_thread, struct context **ret_context, struct stream **ret_stream);
