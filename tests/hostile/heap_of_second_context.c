/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's heap is taken by a first context with a small limit, and then by a second one whose limit is 8 GiB.
 *
 * Whether the heap was taken was known once for a device, so the second context's came unannounced, and 9.3 GiB were
 * held in a slice of 2 GiB. Now it is known for each context.
 */
#include "tests/hostile/hostile.h"

static void use_heap(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUfunction function;
	CUmodule module;

	hostile_ptx(&(struct hostile_code){.has_heap = true}, text);
	if (cuModuleLoadData(&module, text) != CUDA_SUCCESS)
		return;
	MUST(cuModuleGetFunction(&function, module, "k"));
	hostile_launch(function, NULL);
	cuCtxSynchronize();
	hostile_look();
}

static void attack(void)
{
	CUcontext second;

	hostile_begin();
	use_heap();
	if (cuCtxCreate_v2(&second, 0, 0) != CUDA_SUCCESS)
		return;
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	use_heap();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
