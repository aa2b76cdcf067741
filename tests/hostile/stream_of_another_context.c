/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program launches on a stream of a context that is not current, which the driver allows. Only the stream tells where
 * the work runs: an event of the current context cannot be recorded there.
 */
#include "tests/hostile/served.h"

static void attack(void)
{
	CUfunction kernel;
	CUstream stream;

	served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	served_context();
	for (;;) {
		served_launch(kernel, stream, 20 * MS);
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
