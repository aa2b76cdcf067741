/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that slices of this machine have, for their names and sizes. */
#include "node/devices.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "node/nvml_library.h"
#include "node/place.h"

static bool has_simulated(const struct sites *sites)
{
	for (size_t i = 0; i < sites->count; i++)
		if (sites->list[i].is_sim)
			return true;
	return false;
}

static void append(struct inventory *to, const struct inventory *from)
{
	for (unsigned i = 0; i < from->count && to->count < INVENTORY_MAX; i++)
		to->device[to->count++] = from->device[i];
}

int devices_read(
	bool is_sim, const struct sites *sites, struct inventory *ret_devices, struct err *err)
{
	_cleanup_free_ struct inventory *simulated = calloc(1, sizeof(*simulated));
	struct err ignored = ERR_NULL;
	struct place_sim sim;
	int r;

	ret_devices->count = 0;
	if (!is_sim && nvml_library_read_inventory(NULL, ret_devices, &ignored) != 0)
		ret_devices->count = 0;
	if (!simulated || (!is_sim && !has_simulated(sites)))
		return 0;
	r = place_find_sim(&sim, is_sim ? err : &ignored);
	if (r < 0)
		return is_sim ? r : 0;
	if (nvml_library_read_inventory(sim.nvml, simulated, &ignored) == 0)
		append(ret_devices, simulated);
	return 0;
}
