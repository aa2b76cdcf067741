/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, of processes that have left themselves so few descriptors at their first call that the library cannot read
 * in /proc who they are.
 */
#include <sys/resource.h>

#include "tests/hostile/signless.h"

/* The region is one, and what is opened beside it another. */
#define LEFT 2

static void begin_with_few(void)
{
	struct rlimit before, few;
	int first = dup(0);

	close(first);
	MUST(getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	few.rlim_cur = (rlim_t)(first + LEFT);
	MUST(setrlimit(RLIMIT_NOFILE, &few));
	cuInit(0);
	MUST(setrlimit(RLIMIT_NOFILE, &before));
}

static void attack(void)
{
	signless_attack_after(begin_with_few);
}

int main(int argc, char **argv)
{
	/* A card's driver wants descriptors itself: its cuInit() fails, and again when there are some. */
	return hostile_main(
		argv, &(struct hostile){
			      .quota_bytes = 2 * GIB, .is_simulated_only = true, .attack = attack});
}
