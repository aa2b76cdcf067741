/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen processes at a time begin with a kernel that nobody knows, and end: what each takes before it is known is owed by
 * those that come after it. The first of them all owe nothing yet, so it is judged after 6 s.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/hostile/served.h"

#define KERNEL_NS (100 * MS)
#define AT_ONCE	  16

static void run_one(unsigned i)
{
	served_begin();
	served_launch(served_kernel(), NULL, KERNEL_NS);
	served_sleep(KERNEL_NS);
	if (i % 2)
		raise(SIGKILL);
	_exit(0);
}

static void run_many(void)
{
	for (unsigned i = 0;; i++) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0)
			run_one(i);
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

static void attack(void)
{
	for (unsigned i = 0; i < AT_ONCE; i++) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0)
			run_many();
	}
	for (;;)
		served_sleep(1000 * MS);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 6000,
					 .least_permille = 290,
					 .attack = attack});
}
