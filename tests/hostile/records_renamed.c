/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's records say that they hold the time slice, and have other names every 20 ms. */
#include "tests/hostile/records.h"

#define RECORDS 3

static void attack(void)
{
	struct turn_record *record[RECORDS];
	char from[16], to[16];

	records_enter();
	for (int i = 0; i < RECORDS; i++) {
		snprintf(from, sizeof(from), "x%d.0", i);
		record[i] = records_make(from);
	}
	for (unsigned round = 0;; round++) {
		for (int i = 0; i < RECORDS; i++) {
			records_say(record[i], TURN_HOLD, 0, 40 * MS);
			snprintf(from, sizeof(from), "x%d.%u", i, round);
			snprintf(to, sizeof(to), "x%d.%u", i, round + 1);
			MUST(rename(from, to));
		}
		served_sleep(20 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
