/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's record says that its slice comes in a moment, does, says so for a moment, and goes again. */
#include "tests/hostile/records.h"

static void attack(void)
{
	struct turn_record *record;

	records_enter();
	record = records_make("x");
	for (;;) {
		for (int i = 0; i < 6; i++) {
			record->face.next_ns = records_now_ns() + 39 * MS / 100;
			served_sleep(MS / 10);
		}
		records_say(record, TURN_HOLD, 0, MS / 10);
		served_sleep(MS / 10);
		records_say(record, TURN_FREE, 0, 0);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
