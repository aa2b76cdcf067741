/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel image tells about the device memory that it will take.
 *
 * An ELF image (a cubin) tells all: its sections have sizes, its symbols say which variables are managed, and
 * functions of the device's runtime are undefined symbols in it. PTX tells the sizes of its variables and the
 * functions that it needs, and not how much code becomes of it, which is little. Fat binaries are compressed: of
 * those nothing is known before they are loaded. What is not understood wholly is unknown as well, never empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

struct image {
	bool is_known;
	uint64_t device_bytes;	/* code, constants, and data with static storage; 0: not known */
	uint64_t managed_bytes; /* variables in managed memory */
	bool has_heap;		/* calls malloc() or launches kernels itself */
	bool has_printf;
	bool hides_managed; /* PTX that is not understood and names managed memory, which nothing shows once it is loaded */
};

/*
 * An image as the driver is to get it: a copy of one that tells something, and of every file, because another thread of
 * the program can change its own between our reading and the driver's. What tells nothing is the program's own.
 */
struct image_source {
	struct image image;
	const void *data; /* NULL: there is none */
	void *copy;	  /* or NULL */
};

/*
 * Reads an image in memory, as it is given to cuModuleLoadData(), or in a file. -ENOMEM, -EFAULT or -EFBIG where it
 * cannot be copied: the driver must not see it either. -ENOENT and the like for what is no file. image_close() after
 * a success.
 */
void image_take(const void *data, struct image_source *ret_source); /* unread */
int image_open(const void *data, struct image_source *ret_source) MUST_CHECK;
int image_open_file(const char *path, struct image_source *ret_source) MUST_CHECK;
void image_close(struct image_source *source);
