/* SPDX-License-Identifier: Apache-2.0 */
/* The slice's own record says that it holds the time slice, lets go before it is doubted, and says so again. */
#include "tests/hostile/records.h"

static void attack(void)
{
	struct turn_record *record = records_own();

	for (;;) {
		records_say(record, TURN_HOLD, 0, 45 * MS);
		served_sleep(45 * MS);
		records_say(record, TURN_FREE, 0, 0);
		served_sleep(3 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
