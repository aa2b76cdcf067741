/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's record says for ever that it holds one and the same turn. All slices work meanwhile, this one as well. */
#include "tests/hostile/records.h"

static void attack(void)
{
	uint64_t since_ns = records_now_ns();
	struct turn_record *record;

	records_start_work(2 * MS);
	records_enter();
	record = records_make("x");
	for (;;) {
		records_say(record, TURN_HOLD, 0, 10 * MS);
		record->face.since_ns = since_ns;
		served_sleep(MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
