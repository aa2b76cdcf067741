/* SPDX-License-Identifier: Apache-2.0 */
/* As many records as are looked at say for ever that they want the time slice before all others, and never take it. */
#include "tests/hostile/records.h"

#define RECORDS 60

static void attack(void)
{
	struct turn_record *record[RECORDS];
	char name[16];

	records_enter();
	for (int i = 0; i < RECORDS; i++) {
		snprintf(name, sizeof(name), "x%02d", i);
		record[i] = records_make(name);
	}
	for (;;) {
		for (int i = 0; i < RECORDS; i++)
			records_say(record[i], TURN_WANT, 0, 5 * MS);
		served_sleep(MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
