/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel is done. This one returns much later, as a signal's handler keeps its thread, when the
 * clock has charged more than its events tell of.
 */
#include "tests/hostile/launches_kept.h"

#define KEPT_NS (5 * KERNEL_NS)

static void keep(int number)
{
	(void)number;
	served_sleep(KEPT_NS);
}

static void attack(void)
{
	launches_kept_by(keep);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
