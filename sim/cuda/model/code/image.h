/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel images, as far as they are read: PTX text, cubin, or a fat binary, whose first PTX is read where it is not
 * compressed.
 *
 * A PTX text is read as the compiler writes it: entries, parameters, .global and .const variables
 * (.attribute(.managed) too), .local frames, .extern functions malloc and vprintf, and those by which kernels launch. What it does not
 * say may stand in comments of one line, several on one line or one each:
 *
 *	// vgpu-sim duration_ns=3000000 frame_bytes=65536	before an .entry, for it
 *	// vgpu-sim faults=1					the same: it reads or writes where nothing is
 *	// vgpu-sim code_bytes=4194304				outside of code, for the module
 *	// vgpu-sim uses=malloc uses=printf			the same
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_DURATION_NONE UINT64_MAX

struct image_param {
	char *name;
	size_t offset;
	size_t size;
};

struct image_kernel {
	char *name;
	struct image_param *param;
	unsigned int param_count;
	int duration_param;   /* index of the u64 parameter duration_ns, or -1 */
	uint64_t duration_ns; /* of the comment, or IMAGE_DURATION_NONE */
	uint64_t frame_bytes; /* of a thread, in local memory */
	bool has_fault;	      /* breaks its context */
};

struct image_global {
	char *name;
	size_t size;
	size_t align;
	bool is_managed;
};

struct image {
	bool is_opaque; /* a compressed fat binary: names are not known, any will do */
	struct image_kernel *kernel;
	unsigned int kernel_count;
	struct image_global *global;
	unsigned int global_count;
	uint64_t code_bytes;
	bool has_malloc; /* device code that allocates, or launches kernels */
	bool has_printf;
	struct image *next_kept; /* of module.c */
	bool is_kept;
};

/* Reads an image. Returns 0 and *ret_image, -EINVAL for what is no image, or -ENOMEM. */
int image_read(const void *data, struct image **ret_image);
void image_free(struct image *image);

/* The parts of image_read() for a cubin and for PTX. */
int image_read_cubin(struct image *image, const void *data);
int image_read_ptx(struct image *image, const char *text);

/* Reads a constant expression of PTX. Returns where it ends. */
const char *image_read_expression(const char *at, uint64_t *ret_value);

/* Appends a zeroed element to an array. Returns it, or NULL. */
void *image_append(void **array, unsigned int *count, size_t size);

/* Appends a kernel or a variable; NULL without memory. */
struct image_kernel *image_add_kernel(struct image *image, const char *name, size_t length);
struct image_global *image_add_global(struct image *image, const char *name, size_t length);

/* A function that the image needs of the device's own code. */
void image_note_needed(struct image *image, const char *name, size_t length);

/* The kernel of this name, or NULL. */
const struct image_kernel *image_find(const struct image *image, const char *name);
