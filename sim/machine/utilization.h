/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the last seconds was work. */
#pragma once

#include "sim/machine/layout.h"

/* The time from from_ns to to_ns was work, or work_ns of it, spread evenly. */
void utilization_credit(
	struct layout_utilization *utilization, uint64_t from_ns, uint64_t to_ns, uint64_t work_ns);

/* Of NVML's last six looks whom the device works for, one each sixth of a second, how many fell into work. */
unsigned int utilization_seen_percent(
	const struct layout_utilization *utilization, uint64_t now_ns);

/* How much of the window_ns before now_ns was work. */
uint64_t utilization_within(
	const struct layout_utilization *utilization, uint64_t now_ns, uint64_t window_ns);
