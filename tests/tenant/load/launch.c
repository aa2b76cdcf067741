/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: launches of kernels with frames, the stack limit, and the heap of device code. */
#include <stdio.h>

#include "tests/tenant/load/load.h"

/* 132 MiB of local memory for each 512 bytes of a frame, on the board that the tests use. */
#define FRAME_MOST  1536
#define STACK_LEAST 1024

static CUresult launch(struct load *l, CUmodule module)
{
	const struct door *cu = &l->client->cu;
	CUfunction function = NULL;
	CUresult r = cu->cuModuleGetFunction(&function, module, "k");

	return r == CUDA_SUCCESS
		       ? cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)
		       : r;
}

/* Loads it and launches it; a refused launch unloads it. */
static CUresult take_image(struct load *l, const char *text, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUmodule module = NULL;
	CUresult r = cu->cuModuleLoadData(&module, text), end;

	if (r != CUDA_SUCCESS)
		return r;
	r = launch(l, module);
	if (r == CUDA_SUCCESS) {
		ret_held->value = (uintptr_t)module;
		return r;
	}
	end = cu->cuModuleUnload(module);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult take_frames(struct load *l, struct load_held *ret_held)
{
	char text[256];

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry k()\n{\n\t.local .align 8 .b8 frame[%llu];\n\tret;\n}\n",
		(unsigned long long)(16 + load_below(l, FRAME_MOST)));
	return take_image(l, text, ret_held);
}

/* Once more, as the room may have gone with a smaller limit. */
static CUresult give_module(struct load *l, const struct load_held *held)
{
	CUmodule module = (CUmodule)(uintptr_t)held->value;
	CUresult r = load_below(l, 2) ? launch(l, module) : CUDA_SUCCESS;

	return r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY
		       ? l->client->cu.cuModuleUnload(module)
		       : r;
}

static CUresult use_module(struct load *l, const struct load_held *held)
{
	return launch(l, (CUmodule)(uintptr_t)held->value);
}

static CUresult limit_stack(struct load *l, struct load_held *ret_held)
{
	size_t more = load_below(l, 2) ? load_below(l, FRAME_MOST - STACK_LEAST) : 0;

	return l->client->cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, STACK_LEAST + more);
}

/* The runtime and the heap stay until the context ends. */
static CUresult take_heap(struct load *l, struct load_held *ret_held)
{
	return take_image(l,
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".extern .func (.param .b64 r) malloc (.param .b64 s);\n"
		".visible .entry k()\n{\n\t.param .b64 a;\n\t.param .b64 b;\n"
		"\tst.param.b64 [a], 16;\n\tcall.uni (b), malloc, (a);\n\tret;\n}\n",
		ret_held);
}

const struct load_family load_frames = {.bears_misuse = true,
	.weight = 32,
	.symbol = "cuLaunchKernel",
	.ends_with_context = true,
	.take = take_frames,
	.give = give_module,
	.use = use_module};
const struct load_family load_stack_limit = {
	.weight = 32, .symbol = "cuCtxSetLimit", .take = limit_stack};
const struct load_family load_device_heap = {.weight = 2,
	.symbol = "cuLaunchKernel",
	.ends_with_context = true,
	.needs_solitude = true,
	.take = take_heap,
	.give = give_module};
