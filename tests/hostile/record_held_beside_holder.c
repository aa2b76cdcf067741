/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another user's record says that it holds the time slice, and for long, just while the other slice does, which gives it back. It says nothing while that
 * one waits for the next.
 */
#include "tests/hostile/records.h"

#define KERNEL_NS (5 * MS)

static void attack(void)
{
	const struct turn_record *other;
	struct turn_record *record;
	uint64_t since_ns;

	records_start_work(KERNEL_NS);
	records_enter();
	other = records_of("s1");
	record = records_make("x");
	since_ns = records_now_ns();
	for (;;) {
		if (TURN_WORD_STATE(other->face.word) == TURN_HOLD) {
			records_say(record, TURN_HOLD, 1, 240 * MS);
			record->face.since_ns = since_ns;
		} else {
			records_say(record, TURN_FREE, 0, 0);
		}
		served_sleep(2 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
