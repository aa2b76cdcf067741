/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often something may be done.
 *
 * The bucket is kept as one time: that at which it is full again if nothing more is taken. Each token moves
 * it by 1 / per_s, and a token may be used at once while it is less than burst tokens ahead.
 */
#include "kube/rate.h"

#define SECOND_NS 1000000000ull

uint64_t rate_take(struct rate *rate, uint64_t now_ns)
{
	uint64_t token_ns, ahead_ns;

	if (!rate->per_s)
		return now_ns;
	token_ns = SECOND_NS / rate->per_s;
	ahead_ns = token_ns * (rate->burst ? rate->burst : 1);
	if (rate->free_at_ns < now_ns)
		rate->free_at_ns = now_ns;
	rate->free_at_ns += token_ns;
	return rate->free_at_ns > now_ns + ahead_ns ? rate->free_at_ns - ahead_ns : now_ns;
}

uint64_t rate_pause_ns(unsigned failed, uint64_t first_ns, uint64_t most_ns, uint32_t random)
{
	uint64_t pause_ns = first_ns;

	for (unsigned i = 1; i < failed && pause_ns < most_ns; i++)
		pause_ns = pause_ns > most_ns / 2 ? most_ns : pause_ns * 2;
	if (pause_ns > most_ns)
		pause_ns = most_ns;
	/* in 1,024ths, so that nothing overflows below 200 days */
	return pause_ns / 2 + pause_ns / 2 / 1024 * (random % 1025);
}
