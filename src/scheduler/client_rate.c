/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests a client may make, by its address. */
#include "scheduler/client_rate.h"

#include <stdio.h>
#include <string.h>

static struct rate *find(struct client_rate *limit, const char *address)
{
	size_t oldest = 0;

	for (size_t i = 0; i < CLIENT_RATE_CLIENTS; i++) {
		if (!strcmp(limit->clients[i].address, address))
			return &limit->clients[i].rate;
		if (limit->clients[i].rate.free_at_ns < limit->clients[oldest].rate.free_at_ns)
			oldest = i;
	}
	snprintf(limit->clients[oldest].address, sizeof(limit->clients[oldest].address), "%s",
		address);
	limit->clients[oldest].rate = (struct rate){.per_s = limit->per_s, .burst = limit->burst};
	return &limit->clients[oldest].rate;
}

bool client_rate_take(struct client_rate *limit, const char *address, uint64_t now_ns)
{
	struct rate *rate, taken;

	if (!limit->per_s)
		return true;
	rate = find(limit, address);
	taken = *rate;
	if (rate_take(&taken, now_ns) > now_ns)
		return false;
	*rate = taken;
	return true;
}
