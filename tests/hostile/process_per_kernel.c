/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for each kernel: it ends, or is killed, when its kernel is done, and nobody in it has asked for that. What it
 * was expected to take, and what was learned of it, would end with the process.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/hostile/served.h"

#define KERNEL_NS (50 * MS)

static void run_one(unsigned i)
{
	served_begin();
	served_launch(served_kernel(), NULL, KERNEL_NS);
	served_sleep(KERNEL_NS);
	if (i % 2)
		raise(SIGKILL);
	_exit(0);
}

static void attack(void)
{
	for (unsigned i = 0;; i++) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0)
			run_one(i);
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 290, .attack = attack});
}
