/* SPDX-License-Identifier: Apache-2.0 */
/* Each of the slice's processes begins with a record that is broken, and works for a second. */
#include "tests/hostile/records.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void work(void)
{
	CUfunction kernel;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	served_begin();
	kernel = served_kernel();
	for (;;)
		served_launch(kernel, NULL, MS / 2);
}

static void attack(void)
{
	struct turn_record *record = records_left();

	for (;;) {
		pid_t pid;

		memset(&record->face, 0x5a, sizeof(record->face));
		pid = fork();
		MUST(pid < 0);
		if (pid == 0)
			work();
		served_sleep(1000 * MS);
		MUST(kill(pid, SIGKILL));
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
