/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: streams, and modules and libraries with static data. */
#include <stdio.h>

#include "tests/tenant/load/load.h"

/* What a stream took stays with the context, so only so many are made in a load. */
#define STREAMS_MOST 8

static CUresult take_stream(struct load *l, struct load_held *ret_held)
{
	CUstream stream = NULL;
	CUresult r;

	if (l->own[LOAD_stream] >= STREAMS_MOST)
		return CUDA_SUCCESS;
	r = l->client->cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (r != CUDA_SUCCESS)
		return r;
	l->own[LOAD_stream]++;
	ret_held->value = (uintptr_t)stream;
	return r;
}

static CUresult give_stream(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuStreamDestroy_v2((CUstream)(uintptr_t)held->value);
}

/* It is told by its handle alone whether it is there. */
static CUresult use_stream(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUstream stream = (CUstream)(uintptr_t)held->value;
	CUdeviceptr p = 0;
	CUresult r = cu->cuMemAllocAsync(&p, load_random_bytes(l), stream);

	return r == CUDA_SUCCESS ? cu->cuMemFreeAsync(p, stream) : r;
}

static void write_image(unsigned long long bytes, char text[256])
{
	snprintf(text, 256,
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .global .align 4 .b8 data[%llu];\n.visible .entry nothing()\n{ ret; }\n",
		bytes);
}

static CUresult take_module(struct load *l, struct load_held *ret_held)
{
	cuModuleLoadData_fn *load = (cuModuleLoadData_fn *)client_find("cuModuleLoadData");
	CUmodule module = NULL;
	char text[256];
	CUresult r;

	write_image(1 + load_below(l, 16 * LOAD_MIB), text);
	r = load(&module, text);
	if (r == CUDA_SUCCESS)
		ret_held->value = (uintptr_t)module;
	return r;
}

static CUresult give_module(struct load *l, const struct load_held *held)
{
	cuModuleUnload_fn *unload = (cuModuleUnload_fn *)client_find("cuModuleUnload");

	return unload((CUmodule)(uintptr_t)held->value);
}

static CUresult use_module(struct load *l, const struct load_held *held)
{
	CUmodule module = (CUmodule)(uintptr_t)held->value;
	const struct door *cu = &l->client->cu;
	CUfunction function;
	CUdeviceptr data;
	size_t bytes;
	CUresult r;

	if (load_below(l, 2))
		return LOAD_FN(cuModuleGetGlobal_v2)(&data, &bytes, module, "data");
	r = cu->cuModuleGetFunction(&function, module, "nothing");
	return r == CUDA_SUCCESS
		       ? cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)
		       : r;
}

static CUresult use_library(struct load *l, CUlibrary library)
{
	const struct door *cu = &l->client->cu;
	CUfunction function;
	CUdeviceptr data;
	CUkernel kernel;
	size_t bytes;
	CUresult r;

	if (load_below(l, 2))
		return cu->cuLibraryGetGlobal(&data, &bytes, library, "data");
	r = cu->cuLibraryGetKernel(&kernel, library, "nothing");
	return r == CUDA_SUCCESS ? cu->cuKernelGetFunction(&function, kernel) : r;
}

/* Its use may be refused, after which it is unloaded unused. */
static CUresult take_library(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUlibrary library = NULL;
	char text[256];
	CUresult r, end;

	write_image(1 + load_below(l, 16 * LOAD_MIB), text);
	r = cu->cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0);
	if (r != CUDA_SUCCESS)
		return r;
	r = use_library(l, library);
	if (r == CUDA_SUCCESS) {
		ret_held->value = (uintptr_t)library;
		return r;
	}
	end = cu->cuLibraryUnload(library);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult give_library(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuLibraryUnload((CUlibrary)(uintptr_t)held->value);
}

static CUresult use_library_again(struct load *l, const struct load_held *held)
{
	return use_library(l, (CUlibrary)(uintptr_t)held->value);
}

const struct load_family load_stream = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuStreamCreate",
	.ends_with_context = true,
	.take = take_stream,
	.give = give_stream,
	.use = use_stream};
const struct load_family load_module = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuModuleLoadData",
	.ends_with_context = true,
	.take = take_module,
	.give = give_module,
	.use = use_module};
const struct load_family load_library = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuLibraryLoadData",
	.take = take_library,
	.give = give_library,
	.use = use_library_again};
