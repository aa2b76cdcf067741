/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an image of any kind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"

/* The first words of NVIDIA's fat binaries: the container, and the wrapper around it. */
#define FAT_MAGIC     UINT32_C(0xba55ed50)
#define WRAPPER_MAGIC UINT32_C(0x466243b1)

struct wrapper {
	uint32_t magic, version;
	const void *container;
};

struct container {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t bytes; /* behind this head */
};

/* The first image of a container; PTX that is not compressed is read. */
struct contained {
	uint16_t kind, version;
	uint32_t head_bytes;
	uint64_t bytes;
	uint32_t compressed_bytes; /* 0: it is not */
};
#define KIND_PTX 1

static int read_fat_binary(struct image *image, const void *data)
{
	const struct wrapper *wrapper = data;
	const struct container *container =
		wrapper->magic == WRAPPER_MAGIC ? wrapper->container : data;
	const struct contained *first =
		(const void *)((const char *)container + container->head_bytes);

	image->is_opaque = true;
	if (container->bytes < sizeof(*first) || first->kind != KIND_PTX || first->compressed_bytes)
		return 0;
	image->is_opaque = false;
	return image_read_ptx(image, (const char *)first + first->head_bytes);
}

int image_read(const void *data, struct image **ret_image)
{
	const unsigned char *bytes = data;
	struct image *image = calloc(1, sizeof(*image));
	uint32_t magic;
	int r = 0;

	if (!image)
		return -ENOMEM;
	memcpy(&magic, bytes, 4);
	if (memcmp(bytes, "\177ELF", 4) == 0)
		r = image_read_cubin(image, bytes);
	else if (magic == FAT_MAGIC || magic == WRAPPER_MAGIC)
		r = read_fat_binary(image, data);
	else if (strstr(data, ".version"))
		r = image_read_ptx(image, data);
	else
		r = -EINVAL;
	if (r != 0) {
		image_free(image);
		return r;
	}
	*ret_image = image;
	return 0;
}
