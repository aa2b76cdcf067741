/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another user's record says that it holds the time slice, and each tenth of a second that it has begun anew. All slices work
 * meanwhile, this one as well, so nobody leaves time that would pay for it.
 */
#include "tests/hostile/records.h"

static void attack(void)
{
	records_start_work(MS / 2);
	records_enter();
	records_hold_again(records_make("x"));
}

int main(void)
{
	return served_beside_main(attack);
}
