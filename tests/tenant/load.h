/* SPDX-License-Identifier: Apache-2.0 */
/* A random load over every way to take and give back device memory that a tenant has. */
#pragma once

#include <stdint.h>

#include "tests/tenant/client.h"

struct load_count {
	uint64_t done, refused;
};

/*
 * Does so many random operations on the current device and gives all memory back. Returns 0, or the
 * first result of the driver that is neither success nor "out of memory". ret_count is set in either
 * case. Several threads may do this at once, each with a seed of its own.
 */
int load_run(
	struct client *client, uint64_t seed, uint64_t operations, struct load_count *ret_count);
