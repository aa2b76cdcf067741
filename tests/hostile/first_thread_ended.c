/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that give one long kernel, take their sign of life away, and end their first thread: another one lives on. None has a thread
 * of the library's, which they refuse.
 */
#include <sys/syscall.h>

#include "tests/hostile/signless.h"
#include "tests/hostile/silent.h"
#include "tests/hostile/thread_refused.h"

static void *live_on(void *argument)
{
	for (;;)
		served_sleep(1000 * MS);
	return NULL;
}

static void be_silent(void)
{
	pthread_t thread;

	signless_unmap();
	MUST(pthread_create(&thread, NULL, live_on, NULL));
	syscall(SYS_exit, 0);
}
