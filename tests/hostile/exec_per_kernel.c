/* SPDX-License-Identifier: Apache-2.0 */
/* One process that calls exec when each of its kernels is done: its PID and start time stay, and what it learned does not. */
#include <unistd.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (200 * MS)

static void attack(void)
{
	char name[] = "exec_per_kernel", *arguments[] = {name, NULL};

	counted_crowd(3);
	served_begin();
	served_launch(served_kernel(), NULL, KERNEL_NS);
	served_sleep(KERNEL_NS);
	execv("/proc/self/exe", arguments);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
