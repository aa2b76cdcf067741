/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: how long they take, and what a launch needs. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

#define KERNEL_MAGIC	     0x4b524e31u
#define KERNEL_LIBRARY_MAGIC 0x4b524e4cu

struct context;

struct kernel {
	_Atomic uint32_t magic; /* 0 once its module is gone */
	_Alignas(16) uint32_t
		library_magic; /* a CUkernel points here, a CUfunction to the beginning */
	struct module *module;
	const char *name; /* owned by the image, or own_name */
	char *own_name;
	const struct image_kernel *image; /* NULL: accepted by name from an image we cannot read */
	int max_dynamic_shared;
	_Atomic uint64_t rule_epoch;	   /* of rule_duration_ns; 0: never looked up */
	_Atomic uint64_t rule_duration_ns; /* 0: no rule */
	_Atomic unsigned long long
		ready_life;	  /* of the context in which all is there for a launch */
	struct kernel_told *told; /* launch_old.c; NULL: nothing yet */
	struct kernel *next;	  /* of its module, or of those that have ended */
	void *memory;
};

/*
 * What a launch of the kernel in this context needs beside frames: a library's module there, the
 * heap of device code. Cheap when all is there. Takes memory_lock.
 */
CUresult kernel_make_ready(struct kernel *kernel, struct context *context);

/* How long a launch with these parameters takes. */
uint64_t kernel_duration(struct kernel *kernel, void **params, void **extra);

/* The frame of a thread, in local memory; 0 where the image is unknown. */
uint64_t kernel_frame_bytes(const struct kernel *kernel);

/*
 * The kernel of a CUfunction or CUkernel, or NULL. The two of one kernel are told apart: some calls take both, and
 * some one alone.
 */
struct kernel *kernel_check(const void *handle);

static inline bool kernel_is_of_library(const void *handle)
{
	return handle && *(const uint32_t *)handle == KERNEL_LIBRARY_MAGIC;
}

static inline CUkernel kernel_library_handle(const struct kernel *kernel)
{
	return (CUkernel)&kernel->library_magic;
}
