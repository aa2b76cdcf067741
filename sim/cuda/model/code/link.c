/* SPDX-License-Identifier: Apache-2.0 */
/* The linker: texts are put one behind the other; of other images only one can be linked. */
#include "sim/cuda/model/code/link.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/driver.h"

#define LINK_MAGIC 0x4c4e4b31u

struct link *link_new(void)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->magic = LINK_MAGIC;
	driver_keep_relic(&link->relic);
	return link;
}

struct link *link_check(CUlinkState state)
{
	struct link *link = (struct link *)state;

	return link && link->magic == LINK_MAGIC ? link : NULL;
}

/* Reads the image as a load would, so that what is none is refused here. */
static CUresult check_image(const char *data)
{
	struct image *image;
	int r = image_read(data, &image);

	if (r != 0)
		return module_read_error(r);
	image_free(image);
	return CUDA_SUCCESS;
}

static CUresult append(struct link *link, const char *data, size_t bytes)
{
	char *more = realloc(link->data, link->bytes + bytes + 8);

	if (!more)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(more + link->bytes, data, bytes);
	memset(more + link->bytes + bytes, 0, 8);
	link->data = more;
	link->bytes += bytes;
	return CUDA_SUCCESS;
}

CUresult link_add(struct link *link, CUjitInputType type, const void *data, size_t bytes)
{
	char *copy;
	CUresult result;

	if (!link || link->is_complete)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || bytes == 0 || type > CU_JIT_INPUT_NVVM)
		return CUDA_ERROR_INVALID_VALUE;
	if (link->data && type != CU_JIT_INPUT_PTX)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* A text may come with or without a zero behind it. */
	if (type == CU_JIT_INPUT_PTX)
		bytes = strnlen(data, bytes);
	copy = calloc(1, bytes + 8);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, data, bytes);
	result = check_image(copy);
	if (result == CUDA_SUCCESS)
		result = append(link, copy, bytes);
	free(copy);
	return result;
}

void link_end(struct link *link)
{
	free(link->data);
	link->data = NULL;
	link->magic = 0;
}
