/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice works for a moment and then is gone for longer than others think it there. One that may use what it leaves has no
 * limit meanwhile, and each time work under way that nothing measures.
 */
#include "tests/hostile/served.h"

static void attack(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;) {
		for (int i = 0; i < 200; i++)
			served_launch(kernel, NULL, MS / 2);
		MUST(cuStreamSynchronize(NULL));
		served_sleep(1200 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
