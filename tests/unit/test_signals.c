/* SPDX-License-Identifier: Apache-2.0 */
/* The signals by themselves, with a gate of the test's own. */
#include "tenant/compute/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenant/compute/gate.h"
#include "tests/unit/cmocka_ready.h"

_Atomic uint64_t gate_next_poll;
_Atomic uint32_t gate_mode;

static void (*disposition(int number))(int)
{
	struct sigaction now;

	assert_int_equal(sigaction(number, NULL, &now), 0);
	return now.sa_handler;
}

static void the_program(int number)
{
	(void)number;
}

/* signals_take() is for once in a process's life, so each case is a child of its own. */
static void run_in_child(void (*work)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define must(claim)                             \
	do {                                    \
		if (!(claim))                   \
			_exit(__LINE__ & 0x7f); \
	} while (0)

static void take_and_raise(void)
{
	errno = EPIPE;
	signals_take();
	must(errno == EPIPE && !signals_is_suspended());
	must(disposition(SIGUSR1) != SIG_DFL && disposition(SIGUSR2) != SIG_DFL);
	gate_next_poll = UINT64_MAX;
	must(raise(SIGUSR2) == 0 && signals_is_suspended() && gate_next_poll == 0);
	must(gate_mode == GATE_OFF);
	gate_mode = GATE_POLL;
	must(raise(SIGUSR2) == 0 && signals_is_suspended() && gate_mode == GATE_ON);
	gate_next_poll = UINT64_MAX;
	must(raise(SIGUSR1) == 0 && !signals_is_suspended() && gate_next_poll == 0);
	must(errno == EPIPE);
}

static void suspended_by_one_and_resumed_by_the_other(void **state)
{
	run_in_child(take_and_raise);
}

static void take_with_one_claimed(void)
{
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, the_program);
	signals_take();
	must(disposition(SIGUSR1) == SIG_IGN && disposition(SIGUSR2) == the_program);
}

static void claimed_signals_are_left_alone(void **state)
{
	run_in_child(take_with_one_claimed);
}

static void take_twice(void)
{
	signals_take();
	signal(SIGUSR2, SIG_DFL);
	signals_take();
	must(disposition(SIGUSR2) == SIG_DFL);
}

static void what_the_program_does_later_stays(void **state)
{
	run_in_child(take_twice);
}

static void fork_while_suspended(void)
{
	int status = -1;
	pid_t child;

	signals_take();
	must(raise(SIGUSR2) == 0);
	child = fork();
	if (child == 0) {
		must(!signals_is_suspended());
		must(raise(SIGUSR2) == 0 && signals_is_suspended());
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && status == 0 && signals_is_suspended());
}

static void a_child_is_not_suspended_with_its_parent_and_may_be_by_itself(void **state)
{
	run_in_child(fork_while_suspended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspended_by_one_and_resumed_by_the_other),
		cmocka_unit_test(claimed_signals_are_left_alone),
		cmocka_unit_test(what_the_program_does_later_stays),
		cmocka_unit_test(a_child_is_not_suspended_with_its_parent_and_may_be_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
