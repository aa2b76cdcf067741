/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that allocates from the device's heap, whose limit is 8 GiB in its own context, is launched while another context is current, in the
 * default stream of that one, by a driver that does not refuse that.
 *
 * The heap comes in the function's context, and the stream's was looked at, which has no such code: 9,368 MiB were held in a slice of 2 GiB. Now
 * it is the function's that is.
 */
#include "tests/hostile/hostile.h"

static void attack(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUcontext first, second;
	CUfunction function;
	CUmodule module;

	MUST(cuInit(0));
	MUST(cuCtxCreate_v2(&first, 0, 0));
	MUST(cuCtxCreate_v2(&second, 0, 0));
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	MUST(cuModuleLoadData(
		&module, hostile_ptx(&(struct hostile_code){.has_heap = true}, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
	MUST(cuCtxSetCurrent(first));
	hostile_launch(function, NULL);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .board = "launches_elsewhere = 1",
					  .attack = attack});
}
