/* SPDX-License-Identifier: Apache-2.0 */
/* A program in a container, as the simulated node sees it. */
#include "tests/plugin/mig_program.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/machine/machine.h"
#include "sim/machine/mig.h"
#include "tests/unit/cmocka_ready.h"

pid_t mig_program_start(int gpu, int instance)
{
	struct machine *own;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		/* a test that fails must not leave it behind: who waits for the end of its output would wait for ever */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (machine_open(NULL, NULL, &own, NULL, 0) || machine_join(own))
			_exit(1);
		if (instance >= 0)
			mig_use(own, gpu, (unsigned)instance, 0);
		machine_set_contexts(own, gpu, 1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

void mig_program_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
