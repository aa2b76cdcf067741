/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests a client may make, by its address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/rate.h"

#define CLIENT_RATE_CLIENTS 64

/* All zero but the first two: nobody has asked yet. Of more clients, those that were quiet longest are forgotten. */
struct client_rate {
	unsigned per_s, burst; /* 0: no limit */
	struct {
		char address[46];
		struct rate rate;
	} clients[CLIENT_RATE_CLIENTS];
};

/* Whether one more may be served now. What may not, does not count. */
bool client_rate_take(struct client_rate *limit, const char *address, uint64_t now_ns);
