/* SPDX-License-Identifier: Apache-2.0 */
/* The two signals that a process of a slice is suspended and resumed by. */
#include "tenant/compute/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "tenant/compute/poll.h"

/*
 * The process that is suspended; 0: it is not. By its PID, so that a child of fork(), which gets a copy
 * of this word at no moment of its own, is not suspended with its parent, and may be by itself at once.
 */
static _Atomic int32_t suspended_pid;

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2, "stored by a handler");

/* Fit for any thread at any place: no thread-local word, no lock, and errno stays as it is. */
static void on_signal(int number)
{
	uint32_t polled = GATE_POLL;

	/* Sequentially consistent, the poll last: a poll because of it sees the suspension. */
	atomic_store(&suspended_pid, number == SIGUSR2 ? (int32_t)getpid() : 0);
	atomic_store(&gate_next_poll, 0);
	/* As if work were metered, until that poll: threads that need not ask the clock come by as well. */
	atomic_compare_exchange_strong(&gate_mode, &polled, GATE_ON);
}

static bool is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static void take(int number)
{
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, theirs;

	if (sigaction(number, NULL, &theirs) < 0 || !is_default(&theirs))
		return;
	sigemptyset(&ours.sa_mask);
	/* Another thread of the program may have claimed it since the look. */
	if (sigaction(number, &ours, &theirs) == 0 && !is_default(&theirs))
		sigaction(number, &theirs, NULL);
}

void signals_take(void)
{
	/* A program that goes back to the default later has claimed that, and a child inherits it. */
	static _Atomic bool is_done;
	int saved_errno = errno;

	if (atomic_exchange(&is_done, true))
		return;
	/* The signal that resumes comes first: a process that can be suspended can be resumed. */
	take(SIGUSR1);
	take(SIGUSR2);
	errno = saved_errno;
}

bool signals_is_suspended(void)
{
	/* pairs with the handler's store */
	int32_t pid = atomic_load(&suspended_pid);

	return pid && pid == (int32_t)getpid();
}
