/* SPDX-License-Identifier: Apache-2.0 */
/* The slice works on while its record is overwritten with noise again and again, as by another program of its container. */
#include "tests/hostile/records.h"

#include <stdlib.h>
#include <string.h>

/* The pages before those of the slice's own processes. */
#define NOISE_BYTES 4096

static void scribble(struct turn_record *record)
{
	unsigned char noise[NOISE_BYTES];

	srandom(1);
	for (;;) {
		for (unsigned i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)random();
		memcpy(record, noise, sizeof(noise));
		served_sleep(MS + (uint64_t)random() % (100 * MS));
	}
}

static void attack(void)
{
	records_beside_work(scribble);
}

int main(void)
{
	return served_beside_main(attack);
}
