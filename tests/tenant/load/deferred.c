/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load family: memory of every kind that can be is freed in the order of a stream that is busy, and stays until the stream is
 * there; some streams are destroyed meanwhile.
 */
#include "tests/tenant/load/load.h"

#define BUSY_MOST_NS 1000000

static const char busy_code[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry busy(.param .u64 duration_ns)\n{\n"
	"\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n"
	"\tld.param.u64 %rd1, [duration_ns];\n\tmov.u64 %rd2, %globaltimer;\n"
	"again:\n\tmov.u64 %rd3, %globaltimer;\n\tsub.u64 %rd3, %rd3, %rd2;\n"
	"\tsetp.lt.u64 %p1, %rd3, %rd1;\n\t@%p1 bra again;\n\tret;\n}\n";

static CUresult keep_busy(struct load *l, CUmodule module, CUstream stream)
{
	uint64_t duration_ns = 1 + load_below(l, BUSY_MOST_NS);
	void *parameters[] = {&duration_ns};
	CUfunction function;
	CUresult r = l->client->cu.cuModuleGetFunction(&function, module, "busy");

	return r == CUDA_SUCCESS ? l->client->cu.cuLaunchKernel(
					   function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL)
				 : r;
}

static CUresult allocate(struct load *l, CUstream stream, CUdeviceptr *ret_block)
{
	const struct door *cu = &l->client->cu;
	uint64_t bytes;
	size_t pitch;

	switch (load_below(l, 3)) {
	case 0:
		bytes = load_random_bytes(l);
		return bytes % 4 ? cu->cuMemAlloc_v2(ret_block, bytes)
				 : cu->cuMemAllocManaged(ret_block, bytes, CU_MEM_ATTACH_GLOBAL);
	case 1:
		return cu->cuMemAllocPitch_v2(
			ret_block, &pitch, 1 + load_below(l, 4096), 1 + load_below(l, 4096), 4);
	default:
		return cu->cuMemAllocAsync(ret_block, load_random_bytes(l), stream);
	}
}

/* The driver frees no managed memory in a stream's order. */
static CUresult free_block(struct load *l, CUdeviceptr block, CUstream stream)
{
	CUresult r = l->client->cu.cuMemFreeAsync(block, stream);

	return r == CUDA_ERROR_INVALID_VALUE ? l->client->cu.cuMemFree_v2(block) : r;
}

/* A few blocks come, and go when the stream is there. */
static CUresult allocate_and_free(struct load *l, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr block;

	for (uint64_t i = load_below(l, 4); i > 0 && r == CUDA_SUCCESS; i--) {
		r = allocate(l, stream, &block);
		if (r == CUDA_SUCCESS)
			r = free_block(l, block, stream);
	}
	return r;
}

static CUresult work(struct load *l, CUmodule module)
{
	const struct door *cu = &l->client->cu;
	CUstream stream = NULL;
	CUresult r = CUDA_SUCCESS, end;

	if (load_below(l, 4) == 0)
		r = cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = keep_busy(l, module, stream);
	if (r == CUDA_SUCCESS)
		r = allocate_and_free(l, stream);
	end = stream ? cu->cuStreamDestroy_v2(stream) : CUDA_SUCCESS;
	return r == CUDA_SUCCESS ? end : r;
}

static CUresult take(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUmodule module = NULL;
	CUresult r = cu->cuModuleLoadData(&module, busy_code), end;

	if (r != CUDA_SUCCESS)
		return r;
	r = work(l, module);
	if (r == CUDA_SUCCESS) {
		ret_held->value = (uintptr_t)module;
		return r;
	}
	end = cu->cuModuleUnload(module);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult give(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuModuleUnload((CUmodule)(uintptr_t)held->value);
}

/* Once more, with what is there. */
static CUresult use(struct load *l, const struct load_held *held)
{
	return work(l, (CUmodule)(uintptr_t)held->value);
}

const struct load_family load_deferred = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuMemFreeAsync",
	.ends_with_context = true,
	.stays_with_primary = true,
	.take = take,
	.give = give,
	.use = use};
