/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Six pieces wait to be measured, of which the first is long. The seventh is longer, and is let through after a while, as it may
 * be what the first waits for. Then the stream idles, so that no piece follows whose measure would include it.
 */
#include "tests/hostile/served.h"

#define SHORT_NS 20000
#define KNOWN	 40 /* pieces, after which the kernel's time is known */

static void wait_for(CUfunction kernel, uint64_t ns)
{
	served_launch(kernel, NULL, ns);
	MUST(cuStreamSynchronize(NULL));
}

static void make_known(CUfunction kernel)
{
	for (unsigned i = 0; i < KNOWN; i++)
		wait_for(kernel, SHORT_NS);
	served_sleep(2 * MS);
}

static void attack(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	make_known(kernel);
	for (;;) {
		/* From here on each piece is measured by itself. */
		wait_for(kernel, MS);
		make_known(kernel);
		served_launch(kernel, NULL, 300 * MS);
		for (unsigned i = 0; i < 5; i++)
			served_launch(kernel, NULL, SHORT_NS);
		wait_for(kernel, 300 * MS);
		served_sleep(MS);
		make_known(kernel);
	}
}

int main(int argc, char **argv)
{
	/* A round of 0.6 s lies whole at the end of a window. */
	return served_main(argv,
		&(struct served){.cap_percent = 30, .allowance_permille = 80, .attack = attack});
}
