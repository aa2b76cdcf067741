/* SPDX-License-Identifier: Apache-2.0 */
/* A record that is seen at NOW. */
#pragma once

#include "policy/turn_order.h"

#define MS  UINT64_C(1000000)
#define NOW (1000 * MS)

static inline struct turn_peer peer(
	enum turn_state state, uint32_t rank, uint64_t ticket_ns, uint64_t until_ns)
{
	return (struct turn_peer){.claim = {.state = state,
					  .rank = rank,
					  .ticket_ns = ticket_ns,
					  .until_ns = until_ns,
					  .seen_ns = NOW}};
}
