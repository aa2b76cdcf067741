/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No harm is meant: work of one stream waits for a word that is written behind work of another one, which the program gives next. And between
 * these a function of the host.
 *
 * While the limit held that back the wait was charged as work, and each was longer than the one before: after twenty of them a program stood still.
 */
#include "tests/hostile/served.h"

static void touch(void *count)
{
	++*(unsigned *)count;
}

static void attack(void)
{
	static unsigned count;
	CUstream waits, writes;
	CUdeviceptr word;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc_v2(&word, 4));
	MUST(cuMemsetD32_v2(word, 0, 1));
	for (unsigned i = 1;; i++) {
		MUST(cuStreamWaitValue32_v2(waits, word, i, CU_STREAM_WAIT_VALUE_GEQ));
		served_launch(kernel, waits, MS);
		MUST(cuLaunchHostFunc(waits, touch, &count));
		served_launch(kernel, writes, MS);
		MUST(cuStreamWriteValue32_v2(writes, word, i, 0));
		if (i % 16 == 0)
			MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 280, .attack = attack});
}
