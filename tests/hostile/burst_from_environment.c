/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant gives itself a burst of a second, idles, and works at full speed then. */
#include "tests/hostile/served.h"

static void attack(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_launch(kernel, NULL, MS);
	MUST(cuCtxSynchronize());
	served_sleep(10500 * MS);
	for (;;) {
		for (int i = 0; i < 500; i++)
			served_launch(kernel, NULL, MS);
		MUST(cuCtxSynchronize());
		served_sleep(1000 * MS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 10,
					 .settle_ms = 10000,
					 .window_ms = 1000,
					 .allowance_permille = 30,
					 .attack = attack,
					 .setting = "VGPU_COMPUTE_BURST_MS=1000"});
}
