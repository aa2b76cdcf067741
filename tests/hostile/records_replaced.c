/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's records say that they hold the time slice, and are other files of the same names every 20 ms. */
#include "tests/hostile/records.h"

#include <sys/mman.h>

#define RECORDS 3

static void attack(void)
{
	char name[16];

	records_enter();
	for (;;) {
		for (int i = 0; i < RECORDS; i++) {
			struct turn_record *record;

			record = records_make("new");
			records_say(record, TURN_HOLD, 0, 40 * MS);
			munmap(record, sizeof(*record));
			snprintf(name, sizeof(name), "x%d", i);
			MUST(rename("new", name));
		}
		served_sleep(20 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
