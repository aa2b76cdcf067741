/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that give one long kernel and stop themselves, so that no thread of theirs charges it. */
#include <signal.h>

#include "tests/hostile/silent.h"

static void be_silent(void)
{
	raise(SIGSTOP);
}
