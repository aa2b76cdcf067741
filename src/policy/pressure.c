/* SPDX-License-Identifier: Apache-2.0 */
/* A slice that holds more than its quota. */
#include "policy/pressure.h"

enum pressure_verdict pressure_look(
	struct pressure *pressure, bool is_shrunk, uint32_t limit_units, uint32_t used_units)
{
	bool is_first = !pressure->is_in_grace, is_less = used_units < pressure->used_units;

	*pressure = (struct pressure){.is_in_grace = false};
	if (!is_shrunk || used_units <= limit_units)
		return PRESSURE_NONE;
	*pressure = (struct pressure){.is_in_grace = true, .used_units = used_units};
	return is_first || is_less ? PRESSURE_GRACE : PRESSURE_OVER;
}

int pressure_largest(const uint32_t *held_units, unsigned count)
{
	uint32_t most = 0;
	int largest = -1;

	for (unsigned i = 0; i < count; i++) {
		if (held_units[i] <= most)
			continue;
		most = held_units[i];
		largest = (int)i;
	}
	return largest;
}
