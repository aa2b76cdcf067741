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

struct image {
	bool is_known;
	uint64_t device_bytes;	/* code, constants, and data with static storage; 0: not known */
	uint64_t managed_bytes; /* variables in managed memory */
	bool has_heap;		/* calls malloc() or launches kernels itself */
	bool has_printf;
	bool hides_managed; /* PTX that is not understood and names managed memory, which nothing shows once it is loaded */
};

/* Reads an image in memory, as it is given to cuModuleLoadData(); NULL is an unknown image. */
struct image image_read(const void *data);

/* The same for an image in a file; what cannot be opened is unknown. */
struct image image_read_file(const char *path);
