/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load families: modules and libraries from fat binaries, which tell nothing of their data before they are loaded.
 */
#include <stdio.h>

#include "tests/tenant/load/load.h"
#include "tests/unit/fat_binary.h"

/* An image with data of a random size, which the caller is told of before it is there. */
static const void *make_image(struct load *l, struct fat_binary *fat, CUdeviceptr *ret_bytes)
{
	char text[256];

	*ret_bytes = 1 + load_below(l, 16 * LOAD_MIB);
	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .global .align 4 .b8 data[%llu];\n.visible .entry nothing()\n{ ret; }\n",
		(unsigned long long)*ret_bytes);
	fat_binary_make(fat, text);
	return fat;
}

static CUresult take_module(struct load *l, struct load_held *ret_held)
{
	struct fat_binary fat;
	CUmodule module = NULL;
	const void *image = make_image(l, &fat, &ret_held->bytes);
	CUresult r;

	load_hide(l, ret_held->bytes);
	r = l->client->cu.cuModuleLoadData(&module, image);
	if (r == CUDA_SUCCESS)
		ret_held->value = (uintptr_t)module;
	return r;
}

static CUresult give_module(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuModuleUnload((CUmodule)(uintptr_t)held->value);
}

static CUresult use_module(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUfunction function;
	CUresult r =
		cu->cuModuleGetFunction(&function, (CUmodule)(uintptr_t)held->value, "nothing");

	return r == CUDA_SUCCESS
		       ? cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)
		       : r;
}

/* By its module, a variable, a kernel, or a launch of that. */
static CUresult use_library(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUlibrary library = (CUlibrary)(uintptr_t)held->value;
	CUfunction function;
	CUdeviceptr data;
	CUmodule module;
	CUkernel kernel;
	size_t bytes;
	CUresult r;

	load_hide(l, held->bytes);
	switch (load_below(l, 4)) {
	case 0:
		return LOAD_FN(cuLibraryGetModule)(&module, library);
	case 1:
		return cu->cuLibraryGetGlobal(&data, &bytes, library, "data");
	case 2:
		r = cu->cuLibraryGetKernel(&kernel, library, "nothing");
		return r == CUDA_SUCCESS ? cu->cuKernelGetFunction(&function, kernel) : r;
	default:
		r = cu->cuLibraryGetKernel(&kernel, library, "nothing");
		return r == CUDA_SUCCESS ? cu->cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1,
						   0, NULL, NULL, NULL)
					 : r;
	}
}

/* Its use may be refused, after which it is unloaded unused. */
static CUresult take_library(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	struct fat_binary fat;
	CUlibrary library = NULL;
	const void *image = make_image(l, &fat, &ret_held->bytes);
	CUresult r = cu->cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0), end;

	if (r != CUDA_SUCCESS)
		return r;
	ret_held->value = (uintptr_t)library;
	if (load_below(l, 4) == 0)
		return r;
	r = use_library(l, ret_held);
	if (r == CUDA_SUCCESS)
		return r;
	ret_held->value = 0;
	end = cu->cuLibraryUnload(library);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult give_library(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuLibraryUnload((CUlibrary)(uintptr_t)held->value);
}

const struct load_family load_hidden_module = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuModuleLoadData",
	.ends_with_context = true,
	.stays_with_process = true,
	.take = take_module,
	.give = give_module,
	.use = use_module};
const struct load_family load_hidden_library = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuLibraryLoadData",
	.stays_with_process = true,
	.take = take_library,
	.give = give_library,
	.use = use_library};
