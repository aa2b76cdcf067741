/* SPDX-License-Identifier: Apache-2.0 */
/* What we read of a kernel image: PTX text, cubin, or a fat binary. */
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
};

struct image_global {
	char *name;
	size_t size;
};

struct image {
	bool is_opaque; /* a fat binary: names are not known, any will do */
	struct image_kernel *kernel;
	unsigned int kernel_count;
	struct image_global *global;
	unsigned int global_count;
};

/* Reads an image. Returns 0 and *ret_image, -EINVAL for what is no image, or -ENOMEM. */
int image_read(const void *data, struct image **ret_image);
void image_free(struct image *image);

/* The kernel of this name, or NULL. */
const struct image_kernel *image_find(const struct image *image, const char *name);
