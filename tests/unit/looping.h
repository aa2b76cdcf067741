/* SPDX-License-Identifier: Apache-2.0 */
/* A loop that a test lets run: for a time, or until something has come. */
#pragma once

#include "base/clock.h"
#include "net/loop.h"
#include "tests/unit/cmocka_ready.h"

static inline void looping_run(struct loop *loop, unsigned ms)
{
	uint64_t until_ns = clock_now_ns() + ms * UINT64_C(1000000);

	do
		assert_int_equal(loop_run(loop, until_ns), 0);
	while (clock_now_ns() < until_ns);
}

/* Fails where the flag is not set after so many seconds. */
static inline void looping_wait(struct loop *loop, const bool *flag, unsigned most_s)
{
	uint64_t until_ns = clock_now_ns() + most_s * UINT64_C(1000000000);

	while (!*flag && clock_now_ns() < until_ns)
		assert_int_equal(loop_run(loop, until_ns), 0);
	assert_true(*flag);
}
