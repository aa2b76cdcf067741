/* SPDX-License-Identifier: Apache-2.0 */
/* Many processes of a slice each take time in advance, keep it for seconds, and use it all at once. */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#include <time.h>
#include <unistd.h>

#define PROCESSES             \
	(counted_is_on_card() \
			? 8   \
			: 30) /* as many as begin in time, and have room for a context each */
#define LATER_NS (2000 * MS)  /* until all have begun */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void attack(void)
{
	uint64_t at_ns = now_ns() + LATER_NS;
	CUfunction kernel;

	for (int i = 1; i < PROCESSES; i++)
		if (fork() == 0)
			break;
	served_begin();
	kernel = served_kernel();
	/* What it takes is known from then on, and goes into what is taken in advance many times. */
	served_launch(kernel, NULL, MS / 4);
	MUST(cuStreamSynchronize(NULL));
	if (now_ns() < at_ns)
		served_sleep(at_ns - now_ns());
	for (;;) {
		served_launch(kernel, NULL, MS / 4);
		MUST(cuStreamSynchronize(NULL));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30,
			      .settle_ms = 1900,
			      .window_ms = 400,
			      .allowance_permille =
				      60, /* the burst, and what one process has in advance */
			      .attack = attack});
}
