/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the devices, or of the nodes, that would do is taken: policies by their names, and scores. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"

#define RANK_KEYS 3

enum rank_key {
	RANK_SPREAD,	/* the emptiest first */
	RANK_BINPACK,	/* the fullest first */
	RANK_UNUSED,	/* the fewest slices first */
	RANK_NUMA,	/* the highest NUMA node first */
	RANK_NUMA_LOWER /* the lowest first */
};

/* The order of devices: by the first key, then by the next; of equal ones the later in the node's list comes first. */
struct rank_policy {
	enum rank_key keys[RANK_KEYS];
	size_t key_count;
	bool is_mutex;	  /* only devices that nobody uses */
	bool is_topology; /* of those that would do, the set that is joined best */
};

/*
 * The policy of a name: spread, binpack, mutex, topology-aware, numa, or several with commas between. What is not known
 * counts as spread. is_numa_bound: all devices of a container are to be of one NUMA node.
 */
struct rank_policy rank_policy_of(const char *name, bool is_numa_bound);

struct rank_weights {
	uint32_t slot, core, memory;
};

/* The weights where nothing else is said: 1 each. */
extern const struct rank_weights rank_weights_default;

/* "slot=1,core=0,memory=5" in any order, each once, not all 0. -EINVAL with err set. */
int rank_weights_parse(
	const char *text, struct rank_weights *ret_weights, struct err *err) MUST_CHECK;

/* What there is, or is used, of a device or of all those of a node. */
struct rank_amount {
	int64_t slots, memory_mib, cores;
};

/* 10 for each of slots, cores and memory that is used up, by weight; 0 where there is none of one of them. */
double rank_score(const struct rank_amount *used, const struct rank_amount *all,
	const struct rank_weights *weights);
