/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's record says all the time that its slice goes first and comes in a moment, and it never does. */
#include "tests/hostile/records.h"

static void attack(void)
{
	struct turn_record *record;

	records_enter();
	record = records_make("x");
	for (;;) {
		records_say(record, TURN_FREE, 0, 0);
		record->face.since_ns = 0;
		record->face.next_ns = records_now_ns() + 39 * MS / 100;
		served_sleep(MS / 10);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
