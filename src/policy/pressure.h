/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice that holds more than its quota: whether a process of it has to go, and which.
 *
 * Only a quota that was lowered while it was in use can bring a slice there by its owner's will. It
 * first gets a grace of one look, and another one whenever it has given something back since the
 * last: who is on the way down is left alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum pressure_verdict {
	PRESSURE_NONE,	/* within the quota, or over it by no shrink */
	PRESSURE_GRACE, /* over it: to be looked at once more */
	PRESSURE_OVER,	/* over it, and nothing was given back in the meantime */
};

/* What the looks at one device have left behind; all zero is a first one. */
struct pressure {
	bool is_in_grace;
	uint32_t used_units; /* by the last look */
};

/* One look. is_shrunk: the limit was lowered since the slice was last within it. */
enum pressure_verdict pressure_look(
	struct pressure *pressure, bool is_shrunk, uint32_t limit_units, uint32_t used_units);

/* Of those that hold so much each, who holds most; the first of several; -1 where nobody does. */
int pressure_largest(const uint32_t *held_units, unsigned count);
