/* SPDX-License-Identifier: Apache-2.0 */
/* Ten records of another user say one after the other that they hold the time slice, none of them for long. */
#include "tests/hostile/records.h"

#define RECORDS 10

static void attack(void)
{
	struct turn_record *record[RECORDS];

	records_enter();
	records_make_all(record, RECORDS);
	for (int i = 0; i < RECORDS; i++)
		records_say(record[i], TURN_FREE, 0, 0);
	served_sleep(100 * MS);
	for (unsigned i = 0;; i++) {
		records_say(record[i % RECORDS], TURN_HOLD, 0, 20 * MS);
		served_sleep(MS / 5);
		if (i)
			records_say(record[(i - 1) % RECORDS], TURN_FREE, 0, 0);
		served_sleep(6 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
