/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives its own default stream a short kernel and a long one, which is known as short, and ends, in a process that has
 * captured once.
 */
#include "tests/hostile/threads_end.h"

static void attack(void)
{
	threads_end_beside(true);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
