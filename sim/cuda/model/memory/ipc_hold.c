/* SPDX-License-Identifier: Apache-2.0 */
/* How often this process holds each piece of memory that processes share. */
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/ipc.h"

static uint16_t holds[MACHINE_KEPT_MAX];

bool ipc_keep(struct device *device, enum machine_kind kind, uint64_t bytes,
	enum machine_shown shown, struct machine_kept *ret_kept)
{
	if (machine_keep(driver.machine, device->index, kind, bytes, shown, ret_kept) != 0)
		return false;
	holds[ret_kept->index] = 1;
	return true;
}

bool ipc_hold(
	uint32_t index, uint32_t generation, bool is_from_maker, struct machine_kept *ret_kept)
{
	if (machine_kept_hold(driver.machine, index, generation, is_from_maker, ret_kept) != 0)
		return false;
	holds[index]++;
	return true;
}

void ipc_drop(uint32_t index)
{
	if (--holds[index] == 0)
		machine_kept_drop(driver.machine, index);
}
