/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives its own default stream a short kernel and a long one, which is known as short, and ends. A capture of another stream is under
 * way, which an event of the whole context would break.
 */
#include "tests/hostile/threads_end.h"

static void attack(void)
{
	threads_end_beside(false);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
