/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that slices of this machine have, for their names and sizes. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "gpu/inventory.h"
#include "node/sites.h"

/*
 * This machine's devices, and behind them the simulated node's where one of the slices is on it; with is_sim, the simulated
 * node's alone. They are a comfort: where nothing tells, there are none. -ENOENT with err set where the simulated node was
 * asked for and is not installed.
 */
int devices_read(bool is_sim, const struct sites *sites, struct inventory *ret_devices,
	struct err *err) MUST_CHECK;
