/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While its slice is alone, and nothing is metered, a program queues a minute of work in one stream, which it destroys. It
 * goes on in another one.
 */
#include "tests/hostile/served.h"

#define QUEUED	 1000
#define LONG_NS	 (60 * MS)
#define SHORT_NS 500000

static void attack(void)
{
	CUstream queue, stream;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&queue, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < QUEUED; i++)
		served_launch(kernel, queue, LONG_NS);
	MUST(cuStreamDestroy_v2(queue));
	for (;;) {
		served_launch(kernel, stream, SHORT_NS);
		MUST(cuStreamSynchronize(stream));
	}
}

int main(void)
{
	return served_beside_main(attack);
}
