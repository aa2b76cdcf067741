/* SPDX-License-Identifier: Apache-2.0 */
/* The linker: texts are put one behind the other; of other images only one can be linked. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/module.h"

#define LINK_MAGIC 0x4c4e4b31u

struct link {
	uint32_t magic; /* 0 once destroyed */
	struct relic relic;
	bool is_complete;
	char *data; /* with a zero behind it */
	size_t bytes;
};

static struct link *check(CUlinkState state)
{
	struct link *link = (struct link *)state;

	return link && link->magic == LINK_MAGIC ? link : NULL;
}

ENTRY_CURRENT(cuLinkCreate,
	(unsigned int count, CUjit_option *options, void **values, CUlinkState *state),
	(count, options, values, state))
{
	struct link *link;

	if (!state || (count > 0 && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	link = calloc(1, sizeof(*link));
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->magic = LINK_MAGIC;
	driver_keep_relic(&link->relic);
	*state = (CUlinkState)link;
	return CUDA_SUCCESS;
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

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t bytes)
{
	struct link *link = check(state);
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

static CUresult add_file(CUlinkState state, CUjitInputType type, const char *path)
{
	char *data;
	size_t bytes;
	CUresult result = module_read_file(path, &data, &bytes);

	if (result != CUDA_SUCCESS)
		return result;
	result = add(state, type, data, bytes);
	free(data);
	return result;
}

ENTRY_CALL_CURRENT(cuLinkCreate_v2,
	(unsigned int count, CUjit_option *options, void **values, CUlinkState *state),
	cuLinkCreate_body(entry.context, count, options, values, state))

ENTRY_CALL(cuLinkAddData,
	(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
		unsigned int count, CUjit_option *options, void **values),
	add(state, type, data, bytes))

ENTRY_CALL(cuLinkAddData_v2,
	(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
		unsigned int count, CUjit_option *options, void **values),
	add(state, type, data, bytes))

ENTRY_CALL(cuLinkAddFile,
	(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
		CUjit_option *options, void **values),
	add_file(state, type, path))

ENTRY_CALL(cuLinkAddFile_v2,
	(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
		CUjit_option *options, void **values),
	add_file(state, type, path))

/* The image is the linker's until cuLinkDestroy. */
ENTRY_BODY(cuLinkComplete, (CUlinkState state, void **image, size_t *bytes), (state, image, bytes))
{
	struct link *link = check(state);

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!link->data)
		return CUDA_ERROR_INVALID_IMAGE;
	link->is_complete = true;
	*image = link->data;
	if (bytes)
		*bytes = link->bytes;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuLinkDestroy, (CUlinkState state), (state))
{
	struct link *link = check(state);

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	free(link->data);
	link->data = NULL;
	link->magic = 0;
	return CUDA_SUCCESS;
}
