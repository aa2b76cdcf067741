/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another user's record says that it holds the time slice, and for long, from the moment at which the other slice takes it: before that one has looked
 * again. It says that its turn began first, or so late that the other one's counts no more.
 */
#include "tests/hostile/records.h"

#define KERNEL_NS (5 * MS)
#define LATER_NS  (260 * MS)

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
	for (unsigned turn = 0;; turn++) {
		while (TURN_WORD_STATE(other->face.word) < TURN_CLAIM)
			served_sleep(MS / 100);
		records_say(record, TURN_HOLD, 1, 240 * MS);
		record->face.since_ns = turn % 2 ? other->face.since_ns + LATER_NS : since_ns;
		while (TURN_WORD_STATE(other->face.word) >= TURN_CLAIM)
			served_sleep(MS / 100);
		records_say(record, TURN_FREE, 0, 0);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
