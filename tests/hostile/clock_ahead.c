/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for each kernel, and each has a clock that is further ahead than the one before, so that the debt is paid as it begins.
 * By turns it is born in its time namespace, and comes there when it has a context.
 */
#include "tests/clock/namespace.h"
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (200 * MS)
#define AHEAD_MS  2000 /* each more than the one before */

static void run_one(unsigned index, bool is_free)
{
	bool is_late = is_free && index % 2 == 0;

	MUST(is_late && !namespace_set_ahead((uint64_t)index * AHEAD_MS));
	served_begin();
	if (is_late)
		(void)namespace_come_to_children(); /* not where the driver has threads */
	served_launch(served_kernel(), NULL, KERNEL_NS);
	MUST(cuStreamSynchronize(NULL));
	_exit(0);
}

/* Where there are no namespaces, as in a neighbour of others, it is a process for each kernel. */
static void attack(void)
{
	bool is_free;

	counted_crowd(3);
	is_free = namespace_become_free();
	for (unsigned i = 1;; i++) {
		pid_t pid;

		MUST(is_free && i % 2 && !namespace_set_ahead((uint64_t)i * AHEAD_MS));
		pid = fork();
		MUST(pid < 0);
		if (pid == 0)
			run_one(i, is_free);
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .least_permille = 230,
					 .idles_card = true,
					 .needs = namespace_find_missing,
					 .attack = attack});
}
