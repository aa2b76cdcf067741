/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and which one is current in a thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/time/timeline.h"

#define CONTEXT_MAGIC  0x43545831u
#define CONTEXT_LIMITS 7

/* The frame for which a new context has room; that room is part of what it takes (H200, driver 580). */
#define CONTEXT_FIRST_FRAME_BYTES 1024

struct green;
struct array;
struct module;
struct shelf;

/* Memory of device code beside its variables. Under memory_lock. */
struct context_code {
	uint64_t bytes;	     /* of modules that are loaded */
	uint64_t room_bytes; /* taken for code, beyond what the context begins with */
	bool has_malloc;
	bool has_heap;
	bool has_printf;
	bool has_printed;
};

/*
 * Never freed: a thread may have a destroyed context current and must be told so. One that nobody has current is the
 * next that is made, as handles of the real driver come again. The primary context of a device is one object for
 * ever, alive or not.
 */
struct context {
	uint32_t magic;
	bool is_primary;
	_Atomic int is_alive;	     /* read without a lock */
	_Atomic unsigned int levels; /* of threads' stacks in which it stands */
	_Atomic int
		fault; /* a CUresult: what its kernel did, told by all calls in it from then on; likewise */
	unsigned int flags;
	unsigned int api_version;
	unsigned int attached; /* by cuCtxAttach; under memory_lock */
	unsigned long long id;
	unsigned long long life; /* another one each time it comes to life */
	struct device *device;
	struct context *owner; /* whose memory and streams it uses: a green one's is the primary */
	struct green *green;   /* NULL: no green context */
	struct heap heap;      /* under memory_lock */
	unsigned int streams;  /* made by the program; under memory_lock */
	unsigned int streams_peak;
	struct timeline timeline; /* under device->time_lock */
	struct module *modules;	  /* under memory_lock */
	struct context_code code;
	uint64_t graph_code_bytes;		 /* what nodes of graphs would fill */
	uint64_t graph_bytes;			 /* what was taken for them */
	uint64_t kept_bytes[MACHINE_KINDS_USED]; /* until the context ends; under memory_lock */
	struct array *arrays;			 /* under memory_lock */
	struct shelf *shelves;			 /* under memory_lock */
	_Atomic size_t limit[CONTEXT_LIMITS];
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	struct context *next;	    /* of all contexts ever */
	struct context *next_spare; /* of those that may be made again */
};

/* Counts a stream in or out, and takes what it costs. Under memory_lock. */
CUresult context_count_stream(struct context *context);
void context_uncount_stream(struct context *context);

/* A stream that the program asked for, and its end. Taking memory_lock. */
CUresult context_new_stream(
	struct context *context, unsigned int flags, int priority, struct stream **ret_stream);
void context_free_stream(struct stream *stream);

/* What went wrong in it on the device, for good; needs no lock. */
static inline CUresult context_fault(const struct context *context)
{
	/* Relaxed: it tells of nothing else. */
	return (CUresult)atomic_load_explicit(&context->fault, memory_order_relaxed);
}

/* Whether it is alive; needs no lock. */
static inline bool context_is_alive(const struct context *context)
{
	/* Pairs with the releases in context_activate(), context_end() and for green ones. */
	return atomic_load_explicit(&context->is_alive, memory_order_acquire) != 0;
}

/* Made by cuCtxCreate of CUDA 2, for functions whose device pointers have 32 bits. */
static inline bool context_is_old(const struct context *context)
{
	return context->api_version < 3020;
}

/* The calling thread's current context if it is alive. 201 without one, 709 when destroyed. */
CUresult context_current(struct context **ret_context);

/*
 * A context from the program: 201 for what is none, 709 when destroyed. NULL means current. For a
 * green context context_check() answers its primary one, like context_current().
 */
CUresult context_check(CUcontext handle, struct context **ret_context);
CUresult context_check_itself(CUcontext handle, struct context **ret_context);

/* The calling thread's stack of contexts, alive or not. Its top, or NULL. */
struct context *context_top(void);
/* False without memory. */
bool context_push(struct context *context);
/* Puts the context in the place of the top one. False without memory. */
bool context_set_top(struct context *context);
/* Returns the context that was at the top, or NULL. */
struct context *context_pop(void);

/* The green context that is current in the calling thread, or NULL. */
struct green *context_current_green(void);

/* The limits of cuCtxGetLimit. */
static inline size_t context_limit(const struct context *context, CUlimit limit)
{
	/* Relaxed: written under memory_lock; a launch at the same time comes before or after. */
	return atomic_load_explicit(&context->limit[limit], memory_order_relaxed);
}

static inline void context_set_limit(struct context *context, CUlimit limit, size_t value)
{
	/* Relaxed: see context_limit(). */
	atomic_store_explicit(&context->limit[limit], value, memory_order_relaxed);
}

/* Under memory_lock: brings the primary context of a device to life, or lets it go again. */
CUresult context_retain_primary(struct device *device);
void context_release_primary(struct device *device);

/* Under memory_lock: the context of a green one, which keeps the primary one alive; its end. */
CUresult context_new_green(
	struct device *device, struct green *green, struct context **ret_context);
void context_end_green(struct context *context);

/*
 * The stream that a handle means in the current context; CUDA_ERROR_INVALID_HANDLE when it means none.
 * is_thread: stream 0 is the thread's own. A stream of another context is right too.
 */
CUresult context_stream(CUstream handle, bool is_thread, struct stream **ret_stream);

/*
 * The life of a context, for context.c and context_primary.c: made once, then brought to life and
 * ended, a primary one again and again. Another one is spared for the next that is made. Under memory_lock.
 */
struct context *context_make(struct device *device, bool is_primary);
void context_spare(struct context *context);
CUresult context_activate(struct context *context, unsigned int flags);
void context_end(struct context *context);

/* Whether a context may have these flags. */
bool context_are_flags_valid(unsigned int flags);
