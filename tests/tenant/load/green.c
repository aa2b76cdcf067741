/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: green contexts, and memory allocated while one is current, which outlives it. */
#include "tests/tenant/load/load.h"

#define MULTIPROCESSORS 8

static CUresult describe(const struct load *l, CUdevResourceDesc *ret_description)
{
	cuDeviceGetDevResource_fn *ask =
		(cuDeviceGetDevResource_fn *)client_find("cuDeviceGetDevResource");
	cuDevSmResourceSplitByCount_fn *split =
		(cuDevSmResourceSplitByCount_fn *)client_find("cuDevSmResourceSplitByCount");
	cuDevResourceGenerateDesc_fn *generate =
		(cuDevResourceGenerateDesc_fn *)client_find("cuDevResourceGenerateDesc");
	CUdevResource all, part;
	unsigned int parts = 1;
	CUresult r = ask(l->client->device, &all, CU_DEV_RESOURCE_TYPE_SM);

	if (r == CUDA_SUCCESS)
		r = split(&part, &parts, &all, NULL, 0, MULTIPROCESSORS);
	return r == CUDA_SUCCESS ? generate(ret_description, &part, 1) : r;
}

static CUresult allocate_in(struct load *l, CUgreenCtx green, CUdeviceptr *ret_pointer)
{
	cuCtxFromGreenCtx_fn *convert = (cuCtxFromGreenCtx_fn *)client_find("cuCtxFromGreenCtx");
	const struct door *cu = &l->client->cu;
	CUcontext context;
	CUresult r = convert(&context, green), back;

	if (r == CUDA_SUCCESS)
		r = cu->cuCtxSetCurrent(context);
	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuMemAlloc_v2(ret_pointer, load_random_bytes(l));
	back = cu->cuCtxSetCurrent(l->context);
	return back == CUDA_SUCCESS ? r : back;
}

/* What it took itself stays until the primary context ends, so it is for processes that end that. */
static CUresult take(struct load *l, struct load_held *ret_held)
{
	cuGreenCtxCreate_fn *create = (cuGreenCtxCreate_fn *)client_find("cuGreenCtxCreate");
	cuGreenCtxDestroy_fn *destroy = (cuGreenCtxDestroy_fn *)client_find("cuGreenCtxDestroy");
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUresult r = describe(l, &description), end;

	if (r == CUDA_SUCCESS)
		r = create(&green, description, l->client->device, CU_GREEN_CTX_DEFAULT_STREAM);
	if (r != CUDA_SUCCESS)
		return r;
	r = allocate_in(l, green, &ret_held->value);
	end = destroy(green);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult give(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuMemFree_v2(held->value);
}

/* The green context stays, too. */
static CUresult take_kept(struct load *l, struct load_held *ret_held)
{
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUresult r = describe(l, &description), end;

	if (r == CUDA_SUCCESS)
		r = LOAD_FN(cuGreenCtxCreate)(
			&green, description, l->client->device, CU_GREEN_CTX_DEFAULT_STREAM);
	if (r != CUDA_SUCCESS)
		return r;
	r = allocate_in(l, green, &ret_held->other);
	if (r == CUDA_SUCCESS) {
		ret_held->value = (uintptr_t)green;
		return r;
	}
	end = LOAD_FN(cuGreenCtxDestroy)(green);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult give_kept(struct load *l, const struct load_held *held)
{
	CUgreenCtx green = (CUgreenCtx)(uintptr_t)held->value;
	CUresult r;

	if (load_below(l, 2)) {
		r = l->client->cu.cuMemFree_v2(held->other);
		return r == CUDA_SUCCESS ? LOAD_FN(cuGreenCtxDestroy)(green) : r;
	}
	r = LOAD_FN(cuGreenCtxDestroy)(green);
	return r == CUDA_SUCCESS ? l->client->cu.cuMemFree_v2(held->other) : r;
}

static CUresult use_kept(struct load *l, const struct load_held *held)
{
	CUdeviceptr p;
	CUresult r = allocate_in(l, (CUgreenCtx)(uintptr_t)held->value, &p);

	return r == CUDA_SUCCESS ? l->client->cu.cuMemFreeAsync(p, NULL) : r;
}

const struct load_family load_kept_green = {.bears_misuse = true,
	.weight = 2,
	.symbol = "cuGreenCtxCreate",
	.stays_with_primary = true,
	.take = take_kept,
	.give = give_kept,
	.use = use_kept};
const struct load_family load_green = {.bears_misuse = true,
	.weight = 2,
	.symbol = "cuGreenCtxCreate",
	.ends_with_context = true,
	.stays_with_primary = true,
	.take = take,
	.give = give};
