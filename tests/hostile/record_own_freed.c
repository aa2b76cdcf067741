/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice's own record says all the time that it has no turn, so that no other slice waits for it. Its kernels take 20 ms, as is known, and run beside
 * the work of others.
 */
#include "tests/hostile/records.h"

#define KERNEL_NS (20 * MS)

static void attack(void)
{
	struct turn_record *record;

	records_start_work(KERNEL_NS);
	record = records_own();
	for (;;) {
		records_say(record, TURN_FREE, 0, 0);
		served_sleep(MS / 4);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
