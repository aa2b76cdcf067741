/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another user's record says that it holds the time slice, and each tenth of a second that it has begun anew. All slices work
 * meanwhile, this one as well, so nobody leaves time that would pay for it.
 */
#include "tests/hostile/records.h"

#define TURN_NS (100 * MS)

static void hold(struct turn_record *record)
{
	uint64_t since_ns = records_now_ns();

	while (records_now_ns() < since_ns + TURN_NS) {
		records_say(record, TURN_HOLD, 0, 10 * MS);
		record->face.since_ns = since_ns;
		served_sleep(MS);
	}
}

static void attack(void)
{
	struct turn_record *record;

	records_start_work(MS / 2);
	records_enter();
	record = records_make("x");
	for (;;) {
		hold(record);
		records_say(record, TURN_FREE, 0, 0);
		served_sleep(MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
