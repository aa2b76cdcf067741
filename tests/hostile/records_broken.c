/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's records are broken and whole again while their folder changes, and say that they hold the time slice. */
#include "tests/hostile/records.h"

#include <fcntl.h>

#define RECORDS 3

static void attack(void)
{
	struct turn_record *record[RECORDS];

	records_enter();
	records_make_all(record, RECORDS);
	for (;;) {
		for (int i = 0; i < RECORDS; i++)
			record[i]->face.magic = 0;
		close(open("change", O_WRONLY | O_CREAT, 0644));
		MUST(unlink("change"));
		served_sleep(6 * MS);
		for (int i = 0; i < RECORDS; i++) {
			records_say(record[i], TURN_HOLD, 0, 40 * MS);
			record[i]->face.magic = TURN_MAGIC;
		}
		served_sleep(14 * MS);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
