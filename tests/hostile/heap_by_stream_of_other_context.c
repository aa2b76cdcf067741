/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library's kernel that allocates from the device's heap is launched in a first context, and then on a stream of a
 * second one, whose heap may have 8 GiB, while the first is still current.
 *
 * A launch was taken to be in the current context, where all was there already, so the second heap, and the frames
 * of the second context, came unannounced. Now a launch is in the context of its stream.
 */
#include "tests/hostile/hostile.h"

static void attack(void)
{
	CUcontext first = hostile_begin(), second;
	char text[HOSTILE_CODE_BYTES];
	CUlibrary library;
	CUkernel kernel;
	CUstream stream;

	hostile_ptx(&(struct hostile_code){.has_heap = true}, text);
	MUST(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&kernel, library, "k"));
	if (cuCtxCreate_v2(&second, 0, 0) != CUDA_SUCCESS)
		return;
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	MUST(cuStreamCreate(&stream, 0));
	MUST(cuCtxSetCurrent(first));
	MUST(hostile_launch((CUfunction)kernel, NULL));
	hostile_launch((CUfunction)kernel, stream);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
