/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel is done. This one never does, as a signal's handler keeps its thread, and nobody else
 * can record an event in that thread's own stream.
 */
#include <unistd.h>

#include "tests/hostile/launches_kept.h"

static void keep(int number)
{
	(void)number;
	for (;;)
		pause();
}

static void attack(void)
{
	launches_kept_by(keep);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
