/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: the driver's launch returns when its kernel is done. So each piece after a pause would have ended when
 * it is taken to begin.
 */
#include <stdlib.h>

#include "tests/hostile/served.h"

#define LONG_NS	    (40 * MS)
#define LONG_PAUSE  200000
#define SHORT_NS    500000
#define SHORT_PAUSE 150000
#define SHORT_TIMES 80

static void attack(void)
{
	CUfunction kernel;

	MUST(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
	served_begin();
	kernel = served_kernel();
	for (;;) {
		served_launch(kernel, NULL, LONG_NS);
		served_sleep(LONG_PAUSE);
		for (unsigned i = 0; i < SHORT_TIMES; i++) {
			served_launch(kernel, NULL, SHORT_NS);
			served_sleep(SHORT_PAUSE);
		}
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 2000,
					 .least_permille = 285,
					 .attack = attack});
}
