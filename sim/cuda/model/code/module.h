/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, the kernels in them, and how long a kernel takes. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/code/image.h"

#define MODULE_MAGIC 0x4d4f4431u

struct context;
struct kernel;

/* Never freed, so that a stale handle is refused for a while. Then it is another one's (module.c). */
struct module {
	uint32_t magic; /* 0 once unloaded */
	bool is_library;
	struct context *context; /* NULL for a library */
	struct image *image;
	struct kernel *kernels;
	CUdeviceptr data;	  /* of all variables but the managed ones; 0: none */
	CUdeviceptr *globals;	  /* the address of each variable */
	struct module *library;	  /* whose module this is in its context, or NULL */
	struct module *instances; /* of a library */
	struct module *next_instance;
	struct module *next, *prev; /* of the context */
	struct relic relic;
};

/* Unloads all modules of a context. Under memory_lock. */
void module_clear(struct context *context);

/* Under memory_lock: a module of an image (which stays the caller's on failure), and its end. */
CUresult module_new(struct context *context, struct image *image, struct module **ret_module);
void module_end(struct module *module);
/* For a module or library that is about to be: all zero but for its relic; NULL without memory. */
struct module *module_take_place(void);

/* Device memory of a module as it is loaded and unloaded; its heap. Under memory_lock. */
CUresult module_take_memory(struct module *module);
void module_give_memory(struct module *module);
CUresult module_take_heap(struct module *module);

/* A handle's module or library while it is loaded, or NULL. */
struct module *module_check(const void *handle, bool is_library);

/* Where a variable is, and its size; both may be NULL. Under memory_lock. */
CUresult module_find_global(const struct module *module, const char *name, bool is_managed_only,
	CUdeviceptr *dptr, size_t *size);

/* For modules and for libraries. These take memory_lock. */
CUresult module_get_kernel(
	const void *handle, bool is_library, const char *name, void **ret_kernel);
CUresult module_count_kernels(const void *handle, bool is_library, unsigned int *count);
CUresult module_list_kernels(
	const void *handle, bool is_library, void **ret_kernels, unsigned int most);

/* The whole file with a zero behind it, to be freed. */
CUresult module_read_file(const char *path, char **ret_data, size_t *ret_bytes);
/* The result for the program of a failed image_read(). */
CUresult module_read_error(int r);
