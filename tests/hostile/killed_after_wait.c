/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for each kernel, which is known as short and takes long. The process waits for it and is killed: its work is
 * over, and nobody has charged it.
 */
#include <signal.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  60 /* pieces, after which the kernel's time is known */
#define SHORT_NS  20000
#define KERNEL_NS (60 * MS)

static void run_one(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (unsigned i = 0; i < KNOWN; i++) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(cuStreamSynchronize(NULL));
		served_sleep(MS / 5);
	}
	served_launch(kernel, NULL, SHORT_NS);
	served_launch(kernel, NULL, KERNEL_NS);
	MUST(cuStreamSynchronize(NULL));
	raise(SIGKILL);
}

static void attack(void)
{
	counted_crowd(8);
	served_one_by_one(run_one);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .least_permille = 280,
					 .idles_card = true,
					 .attack = attack});
}
