/* SPDX-License-Identifier: Apache-2.0 */
/* The slice's own record says for ever that it wants the time slice before all others, and it never takes it. */
#include "tests/hostile/records.h"

static void attack(void)
{
	struct turn_record *record = records_own();

	for (;;) {
		records_say(record, TURN_WANT, 0, 5 * MS);
		served_sleep(MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
