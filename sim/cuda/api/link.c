/* SPDX-License-Identifier: Apache-2.0 */
/* The linker's calls. */
#include <stdlib.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/link.h"
#include "sim/cuda/model/code/module.h"

ENTRY_CURRENT(cuLinkCreate,
	(unsigned int count, CUjit_option *options, void **values, CUlinkState *state),
	(count, options, values, state))
{
	struct link *link;

	if (!state || (count > 0 && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	link = link_new();
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*state = (CUlinkState)link;
	return CUDA_SUCCESS;
}

static CUresult add_file(struct link *link, CUjitInputType type, const char *path)
{
	char *data;
	size_t bytes;
	CUresult result = module_read_file(path, &data, &bytes);

	if (result != CUDA_SUCCESS)
		return result;
	result = link_add(link, type, data, bytes);
	free(data);
	return result;
}

ENTRY_CALL_CURRENT(cuLinkCreate_v2,
	(unsigned int count, CUjit_option *options, void **values, CUlinkState *state),
	cuLinkCreate_body(entry.context, count, options, values, state))

ENTRY_CALL(cuLinkAddData,
	(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
		unsigned int count, CUjit_option *options, void **values),
	link_add(link_check(state), type, data, bytes))

ENTRY_CALL(cuLinkAddData_v2,
	(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
		unsigned int count, CUjit_option *options, void **values),
	link_add(link_check(state), type, data, bytes))

ENTRY_CALL(cuLinkAddFile,
	(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
		CUjit_option *options, void **values),
	add_file(link_check(state), type, path))

ENTRY_CALL(cuLinkAddFile_v2,
	(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
		CUjit_option *options, void **values),
	add_file(link_check(state), type, path))

/* The image is the linker's until cuLinkDestroy. */
ENTRY_BODY(cuLinkComplete, (CUlinkState state, void **image, size_t *bytes), (state, image, bytes))
{
	struct link *link = link_check(state);

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
	struct link *link = link_check(state);

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	link_end(link);
	return CUDA_SUCCESS;
}
