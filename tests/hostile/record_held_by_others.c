/* SPDX-License-Identifier: Apache-2.0 */
/* The slice works on while its record says again and again that one of its processes has just taken the time slice. */
#include "tests/hostile/records.h"

static void hold(struct turn_record *record)
{
	for (;;) {
		records_say(record, TURN_HOLD, 0, 40 * MS);
		served_sleep(MS / 10);
	}
}

static void attack(void)
{
	records_beside_work(hold);
}

int main(void)
{
	return served_beside_main(attack);
}
