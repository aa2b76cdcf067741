/* SPDX-License-Identifier: Apache-2.0 */
/* How long a turn lasts while others wait. */
#include "policy/turn_length.h"

#include "policy/throttle.h"

/* A slice waits for the short turns of all others no longer than this for each slice, itself counted in. */
#define WAIT_NS	    UINT64_C(6000000)
#define HANDOVER_NS UINT64_C(1000000) /* with what a batch may be longer than expected */

#define LONG_NS	    (TURN_CHANGE_NS * 1000 / TURN_CHANGE_PERMILLE)

/* The fewer there are, the longer their turns: each change takes some of the device's time. */
static uint64_t common_ns(unsigned peer_count)
{
	return peer_count ? WAIT_NS * (peer_count + 1) / peer_count - HANDOVER_NS - THROTTLE_MORE_NS
			  : WAIT_NS;
}

uint64_t turn_length_ns(unsigned peer_count, uint32_t weight_percent)
{
	return common_ns(peer_count) * weight_percent / 100;
}

uint64_t turn_length_long_ns(unsigned peer_count, uint32_t weight_percent)
{
	uint64_t ns = TURN_ROUND_NS / (peer_count + 1);

	if (ns > LONG_NS)
		ns = LONG_NS;
	if (ns < common_ns(peer_count))
		ns = common_ns(peer_count);
	ns = ns * weight_percent / 100;
	return ns <= TURN_LENGTH_MAX_NS ? ns : 0;
}

bool turn_length_is_steady(uint64_t since_ns, uint64_t now_ns)
{
	return since_ns && now_ns >= TURN_STEADY_NS && since_ns <= now_ns - TURN_STEADY_NS;
}
