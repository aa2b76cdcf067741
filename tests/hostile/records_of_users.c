/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of two other users say that they hold the time slice, and each tenth of a second that they have begun anew. All slices work
 * meanwhile, so nobody leaves time that would pay for it.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "tests/hostile/records.h"

#define USERS 2

static void lie(unsigned user)
{
	char name[16];

	records_enter_as(user);
	snprintf(name, sizeof(name), "x%u", user);
	records_hold_again(records_make(name));
}

static void attack(void)
{
	records_start_work(MS / 2);
	for (unsigned user = 1; user < USERS; user++) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		lie(user);
	}
	lie(0);
}

int main(void)
{
	return served_beside_main(attack);
}
