/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that give one long kernel, and tell the library that its thread was begun, and begin none. */
#include "tests/hostile/silent.h"
#include "tests/hostile/thread_refused.h"

static void be_silent(void)
{
	for (;;)
		served_sleep(1000 * MS);
}
