/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice works on while its record says at random what a record may say: that it holds, claims or wants the time slice,
 * since long ago or from now on, for a moment or for years, before all others or behind them; or that it is no record.
 */
#include "tests/hostile/records.h"

#include <stdlib.h>

static uint64_t one_of(const uint64_t *values, size_t count)
{
	return values[(size_t)random() % count];
}
#define ONE_OF(...)                             \
	one_of((const uint64_t[]){__VA_ARGS__}, \
		sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void lie_once(struct turn_record *record, uint64_t now_ns)
{
	struct turn_face *face = &record->face;

	switch (random() % 8) {
	case 0:
		face->ticket_ns = ONE_OF(0, 1, now_ns, now_ns + 1000 * MS, UINT64_MAX);
		return;
	case 1:
		face->since_ns = ONE_OF(0, 1, now_ns, now_ns - 20 * MS, now_ns + 1000 * MS);
		return;
	case 2:
		face->rank = (uint32_t)ONE_OF(0, 1, 2, 20, UINT32_MAX);
		return;
	case 3:
		face->next_ns = ONE_OF(0, now_ns, now_ns + MS / 4, now_ns + 2 * MS, UINT64_MAX);
		return;
	case 4:
		face->seen_ns = ONE_OF(0, now_ns, now_ns + 900 * MS, UINT64_MAX);
		return;
	case 5:
		face->magic = ONE_OF(0, TURN_MAGIC, TURN_MAGIC, TURN_MAGIC);
		return;
	case 6:
		record->books.busy_until_ns[random() % 4] =
			ONE_OF(0, TURN_WANTS, now_ns + 200 * MS);
		record->books.process_high = ONE_OF(0, 1, 2, TURN_PROCESSES, UINT64_MAX);
		return;
	default:
		record->born_ns = ONE_OF(0, now_ns, now_ns - 50 * MS);
	}
}

static void lie(struct turn_record *record)
{
	srandom(2);
	for (;;) {
		uint64_t now_ns = records_now_ns();

		record->face.word = TURN_WORD((uint64_t)random() % 4,
					    now_ns + ONE_OF(0, MS, 5 * MS, 40 * MS, 240 * MS,
							     10000 * MS, UINT64_C(1) << 58)) |
				    ONE_OF(0, 0, 0, TURN_WORD_FRESH, TURN_WORD_DRAINING);
		for (long i = random() % 4; i > 0; i--)
			lie_once(record, now_ns);
		served_sleep(MS / 10 + (uint64_t)random() % ONE_OF(MS, 10 * MS, 100 * MS));
	}
}

static void attack(void)
{
	records_beside_work(lie);
}

int main(void)
{
	return served_beside_main(attack);
}
