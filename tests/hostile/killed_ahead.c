/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for each kernel, killed when it is done, so that others charge it from when the process says that it began. Each comes
 * into a clock that is ahead by almost as much as the kernel takes, between its first call and its first context.
 */
#include <signal.h>

#include "tests/clock/namespace.h"
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_MS 95
#define AHEAD_MS  90

static void run_one(bool is_free)
{
	MUST(cuInit(0));
	MUST(is_free && !namespace_set_ahead(AHEAD_MS));
	if (is_free)
		(void)namespace_come_to_children(); /* not where the driver has threads */
	served_context();
	served_launch(served_kernel(), NULL, KERNEL_MS * MS);
	served_sleep(KERNEL_MS * MS);
	raise(SIGKILL);
}

/* Where there are no namespaces, as in a neighbour of others, it is a process for each kernel. */
static void attack(void)
{
	bool is_free;

	counted_crowd(8);
	is_free = namespace_become_free();
	for (;;) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0)
			run_one(is_free);
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .least_permille = 270,
					 .idles_card = true,
					 .needs = namespace_find_missing,
					 .attack = attack});
}
