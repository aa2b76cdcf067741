/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, the kernels in them, and how long a kernel takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/image.h"

#define MODULE_MAGIC 0x4d4f4431u
#define KERNEL_MAGIC 0x4b524e31u

struct context;

struct kernel {
	uint32_t magic; /* 0 once its module is gone */
	struct module *module;
	const char *name; /* owned by the image, or own_name */
	char *own_name;
	const struct image_kernel *image; /* NULL: accepted by name from an image we cannot read */
	int max_dynamic_shared;
	uint64_t rule_epoch;	   /* of rule_duration_ns; 0: never looked up */
	uint64_t rule_duration_ns; /* 0: no rule */
	struct kernel *next;
};

/* Never freed, so that a stale handle is refused. */
struct module {
	uint32_t magic; /* 0 once unloaded */
	bool is_library;
	struct context *context; /* NULL for a library */
	struct image *image;
	struct kernel *kernels;
	struct module_global {
		CUdeviceptr base;
	} * globals;	       /* as many as the image has */
	struct module *loaded; /* of a library: its module in the context it was used in */
	struct module *next, *prev;
};

/* Unloads all modules of a context. Under memory_lock. */
void module_clear(struct context *context);

/* How long a launch with these parameters takes. */
uint64_t module_kernel_duration(struct kernel *kernel, void **params, void **extra);

/* The frame of a thread, in local memory; 0 where the image is unknown. */
uint64_t module_frame_bytes(const struct kernel *kernel);

/* The kernel of a CUfunction or CUkernel, or NULL. */
struct kernel *module_check_kernel(const void *handle);
