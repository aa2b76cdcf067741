/* SPDX-License-Identifier: Apache-2.0 */
/* How near the devices of a node are to each other, and which of them belong together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

#define TOPOLOGY_MAX	   64
#define TOPOLOGY_LINKS_MAX 18 /* of one device */

/* The way from one device to another over PCIe, the longest first. */
enum topology_way {
	TOPOLOGY_WAY_UNKNOWN,
	TOPOLOGY_WAY_SOCKETS, /* from one socket of the host to another */
	TOPOLOGY_WAY_SOCKET,
	TOPOLOGY_WAY_BRIDGE, /* below one bridge of the host */
	TOPOLOGY_WAY_SWITCHES,
	TOPOLOGY_WAY_SWITCH,
	TOPOLOGY_WAY_BOARD,
};

/* As one device sees another. */
struct topology_pair {
	uint8_t way;   /* enum topology_way */
	uint8_t links; /* of NVLink that end at the other */
};

struct topology {
	unsigned count;
	uint8_t switch_links[TOPOLOGY_MAX]; /* of NVLink that end at a switch, by device */
	struct topology_pair pair[TOPOLOGY_MAX][TOPOLOGY_MAX];
};

/*
 * How well two devices are joined, as the scheduler counts it: 10 to 60 for the way over PCIe and 100 for each NVLink
 * between them, or through switches. 0: they are one, or each sees the other otherwise.
 */
unsigned topology_score(const struct topology *topology, unsigned from, unsigned to);

/* Whether one of the two sees links, or a way, that the other does not. */
bool topology_is_lopsided(const struct topology *topology, unsigned a, unsigned b);

struct topology_wish {
	const unsigned *free; /* devices, the preferred ones first */
	unsigned count;	      /* of these */
	unsigned must;	      /* the first so many are in the set anyhow */
	unsigned wanted;
};

/*
 * The `wanted` of the free devices whose scores among each other sum up highest; one alone is that which leaves the others
 * best together. Of equal sets the first in the order of the wish, in which they come, too. Exact up to TOPOLOGY_EXACT free
 * devices; beyond, the best that a search of so many steps finds. -EINVAL: so many there are not.
 */
#define TOPOLOGY_EXACT 16
int topology_choose(const struct topology *topology, const struct topology_wish *wish,
	unsigned *ret_devices) MUST_CHECK;

/*
 * The same of scores that a node has said, [from * device_count + to], each at most TOPOLOGY_SCORE_MAX; NULL: none are
 * known, and the first in the order of the wish are as good as any.
 */
#define TOPOLOGY_SCORE_MAX 100000u /* so that no sum of them is too large for 32 bits */
int topology_choose_scored(const uint32_t *scores, unsigned device_count,
	const struct topology_wish *wish, unsigned *ret_devices) MUST_CHECK;
