/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives its own default stream a short kernel and a long one, which is known as short, and ends. The next thread has the same
 * place in memory, and waits for a stream of its own, which is another one.
 */
#include "tests/hostile/threads_end.h"

static void *wait_for_own(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return unused;
}

static void attack(void)
{
	threads_begin(KNOWN);
	for (;;) {
		threads_run(threads_end_give);
		threads_run(wait_for_own);
		served_sleep(KERNEL_NS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
