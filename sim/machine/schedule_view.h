/* SPDX-License-Identifier: Apache-2.0 */
/* A device's schedule out of the shared file, and back into it. All under the lock of the device. */
#pragma once

#include "sim/machine/schedule_step.h"
#include "sim/machine/state_file.h"

/* Whether a slot may have work on the device. */
void schedule_view_set_member(struct layout_device *device, uint32_t slot, bool is_member);

void schedule_view_load(const struct machine *machine, int unit, struct schedule_view *ret_view);

/* Brings the schedule up to now_ns. Returns whether other processes than the caller have work. */
bool schedule_view_advance(struct machine *machine, int unit, uint64_t now_ns);
