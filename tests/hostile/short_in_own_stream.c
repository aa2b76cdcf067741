/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means no harm, and may not have less for it: one process of the slice gives its thread's own default stream a short kernel now and then, and waits
 * for none. The other one works all the time.
 */
#include "tests/hostile/served.h"

#define KNOWN	 40
#define WORK_NS	 500000
#define SHORT_NS 20000

static void run(int index)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, index ? WORK_NS : SHORT_NS);
	for (;;) {
		served_launch(
			kernel, index ? NULL : CU_STREAM_PER_THREAD, index ? WORK_NS : SHORT_NS);
		if (index)
			MUST(cuStreamSynchronize(NULL));
		else
			served_sleep(130 * MS);
	}
}

static void attack(void)
{
	hostile_processes(2, run);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 3000,
					 .least_permille = 280,
					 .attack = attack});
}
