/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: streams, and modules with static data. */
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

static CUresult take_module(struct load *l, struct load_held *ret_held)
{
	cuModuleLoadData_fn *load = (cuModuleLoadData_fn *)client_find("cuModuleLoadData");
	unsigned long long bytes = 1 + load_below(l, 16 * LOAD_MIB);
	CUmodule module = NULL;
	char text[256];
	CUresult r;

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".global .align 4 .b8 data[%llu];\n.visible .entry nothing()\n{ ret; }\n",
		bytes);
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

const struct load_family load_stream = {.weight = 8,
	.symbol = "cuStreamCreate",
	.ends_with_context = true,
	.take = take_stream,
	.give = give_stream};
const struct load_family load_module = {.weight = 16,
	.symbol = "cuModuleLoadData",
	.ends_with_context = true,
	.take = take_module,
	.give = give_module};
