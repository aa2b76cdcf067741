/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for each kernel, which is known as short and takes long: it is given at once behind work of its stream that was waited for, so that it comes
 * into the same batch, and the process is killed when it is done.
 */
#include <signal.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  20000
#define KERNEL_NS (60 * MS)

static void run_one(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	served_launch(kernel, NULL, KERNEL_NS);
	served_sleep(KERNEL_NS);
	raise(SIGKILL);
}

static void attack(void)
{
	counted_crowd(8);
	served_one_by_one(run_one);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .idles_card = true, .attack = attack});
}
