/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for some kernels, known as short, each of which takes long and is given last before a pause. The process ends before
 * much is doubted, and the next one would know nothing of what was found out.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	 20
#define SHORT_NS 20000

static uint64_t number(const char *name, uint64_t otherwise)
{
	return getenv(name) ? strtoull(getenv(name), NULL, 10) : otherwise;
}

static void run_one(void)
{
	uint64_t kernel_ns = number("K_MS", 20) * MS, hidden = number("HIDDEN", 1);
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (unsigned i = 0; i < KNOWN; i++) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(cuStreamSynchronize(NULL));
	}
	for (uint64_t i = 0; i < hidden; i++) {
		served_launch(kernel, NULL, SHORT_NS);
		served_launch(kernel, NULL, kernel_ns);
		served_sleep(kernel_ns + MS);
	}
	served_launch(kernel, NULL, SHORT_NS);
	MUST(cuStreamSynchronize(NULL));
	_exit(0);
}

static void attack(void)
{
	for (;;) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run_one();
		}
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
