/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an image of any kind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"

int image_read(const void *data, struct image **ret_image)
{
	/* The first words of NVIDIA's fat binaries: the container, and the wrapper around it. */
	static const uint32_t fat_magic = 0xba55ed50, wrapper_magic = 0x466243b1;
	const unsigned char *bytes = data;
	struct image *image = calloc(1, sizeof(*image));
	uint32_t magic;
	int r = 0;

	if (!image)
		return -ENOMEM;
	memcpy(&magic, bytes, 4);
	if (memcmp(bytes, "\177ELF", 4) == 0)
		r = image_read_cubin(image, bytes);
	else if (magic == fat_magic || magic == wrapper_magic)
		image->is_opaque = true;
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
