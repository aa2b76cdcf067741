/* SPDX-License-Identifier: Apache-2.0 */
/* The slice's own record says for ever that it holds the time slice. */
#include "tests/hostile/records.h"

static void attack(void)
{
	struct turn_record *record = records_own();

	for (;;) {
		records_say(record, TURN_HOLD, 0, 40 * MS);
		served_sleep(5 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
