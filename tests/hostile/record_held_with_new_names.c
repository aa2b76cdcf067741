/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another user's records say that they hold the time slice, and for long, just while the other slice does, which gives it back. Each is a new one, of
 * which nobody can know that it was free when that turn began.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/hostile/records.h"

#define KERNEL_NS (5 * MS)

static void attack(void)
{
	const struct turn_record *other;
	struct turn_record *record = NULL;
	char name[32];
	uint64_t since_ns;

	records_start_work(KERNEL_NS);
	records_enter();
	other = records_of("s1");
	since_ns = records_now_ns();
	for (unsigned i = 0;; i++) {
		while (TURN_WORD_STATE(other->face.word) != TURN_HOLD)
			served_sleep(MS);
		snprintf(name, sizeof(name), "x%u", i);
		record = records_make(name);
		records_say(record, TURN_HOLD, 1, 240 * MS);
		record->face.since_ns = since_ns;
		while (TURN_WORD_STATE(other->face.word) == TURN_HOLD)
			served_sleep(MS);
		unlink(name);
		munmap(record, sizeof(*record));
	}
}

int main(void)
{
	return served_beside_main(attack);
}
