/* SPDX-License-Identifier: Apache-2.0 */
/* Where events stand on the host's clock. */
#include "tenant/compute/timebase.h"

#include <stddef.h>

#include "base/clock.h"
#include "tenant/compute/events.h"

bool timebase_place(struct timebase *base, CUevent event, uint64_t soonest_ns, uint64_t *ret_ns)
{
	int64_t since_base;
	uint64_t latest_ns;

	*ret_ns = soonest_ns;
	if (!base || !base->base || !events_distance(base->base, event, &since_base))
		return false;
	/* And before it is seen to have. */
	latest_ns = clock_now_ns() - (uint64_t)since_base;
	if (latest_ns < base->latest_ns)
		base->latest_ns = latest_ns;
	/* An event happens after it was recorded. */
	if ((int64_t)(soonest_ns - base->base_ns) > since_base)
		base->base_ns = soonest_ns - (uint64_t)since_base;
	/* What the host's clock said of a recording may have been read too late, by a thread that lost its processor. */
	if (base->base_ns > latest_ns)
		base->base_ns = latest_ns;
	*ret_ns = base->base_ns + (uint64_t)since_base;
	return true;
}

uint64_t timebase_unsure_ns(const struct timebase *base)
{
	return base && base->latest_ns > base->base_ns ? base->latest_ns - base->base_ns : 0;
}
