/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's records hold the time slice by turns, and together a little longer than the other slice has it. */
#include "tests/hostile/records.h"

#define RECORDS 4
#define LOOK_NS (MS / 2)

static void attack(void)
{
	struct turn_record *record[RECORDS];
	const struct turn_record *other;
	uint64_t had_ns = 100 * MS, way_ns = 0;

	records_enter();
	other = records_of("s1");
	records_make_all(record, RECORDS);
	for (int i = 0; i < RECORDS; i++)
		records_say(record[i], TURN_FREE, 0, 0);
	served_sleep(100 * MS);
	for (unsigned i = 0;; i++) {
		bool is_in_way = way_ns < had_ns + had_ns / 5;

		records_say(record[i / 64 % RECORDS], is_in_way ? TURN_HOLD : TURN_FREE, 0, MS);
		served_sleep(LOOK_NS);
		if (TURN_WORD_STATE(other->face.word) == TURN_HOLD)
			had_ns += LOOK_NS;
		else if (is_in_way)
			way_ns += LOOK_NS;
	}
}

int main(void)
{
	return served_beside_main(attack);
}
