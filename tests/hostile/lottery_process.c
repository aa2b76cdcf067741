/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for a kernel that is known as short, takes long and is given last before a pause. The process ends before
 * much is doubted, and the next one would know nothing of what was found out.
 */
#include "tests/hostile/served.h"

#define KNOWN	  20
#define SHORT_NS  20000
#define KERNEL_NS (20 * MS)

static void run_one(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	served_launch(kernel, NULL, SHORT_NS);
	served_launch(kernel, NULL, KERNEL_NS);
	served_sleep(KERNEL_NS + MS);
	served_launch(kernel, NULL, SHORT_NS);
	MUST(cuStreamSynchronize(NULL));
}

static void attack(void)
{
	served_one_by_one(run_one);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
