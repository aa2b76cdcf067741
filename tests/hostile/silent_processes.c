/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that give one long kernel, live on and make no more calls, so that no call of theirs charges it. */
#include "tests/hostile/silent.h"

static void be_silent(void)
{
	for (;;)
		served_sleep(1000 * MS);
}
