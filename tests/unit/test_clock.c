/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks: what is thought of the processor's count before its rate was measured. */
#include "base/clock.h"

#include "tests/unit/cmocka_ready.h"

#define REST_MS	 20
#define TIMES	 10 /* so much too high or too low is still of the right order */
#define ATTEMPTS 20 /* a busy machine may take the processor away between two clocks */

static void a_milliseconds_ticks_are_of_the_right_order(void **state)
{
	struct timespec rest = {.tv_nsec = REST_MS * 1000000};
	uint64_t least = clock_ticks_of_ms() / TIMES, most = clock_ticks_of_ms() * TIMES;
	uint64_t rate = 0;

	(void)state;
	for (unsigned i = 0; i < ATTEMPTS && (rate < least || rate > most); i++) {
		uint64_t from_ns = clock_now_ns(), from = clock_ticks(), passed;

		nanosleep(&rest, NULL);
		passed = clock_ticks() - from;
		rate = passed / ((clock_now_ns() - from_ns) / 1000000);
	}
	assert_in_range(rate, least, most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_milliseconds_ticks_are_of_the_right_order),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
