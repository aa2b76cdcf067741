/* SPDX-License-Identifier: Apache-2.0 */
/* Cards that fall off the bus and come back, and a driver that is unloaded and loaded again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/machine.h"

/* A card is lost, which it reports as XID 79, or there again. Twice is as once. -EINVAL: there is no such card. */
int presence_lose(struct machine *machine, int device);
int presence_return(struct machine *machine, int device);

bool presence_is_lost(const struct machine *machine, int device);

/* The driver goes, and comes again. What processes had of it is gone then, as if all cards had been lost. */
void presence_stop(struct machine *machine);
void presence_start(struct machine *machine);

bool presence_is_stopped(const struct machine *machine);

/* How often the driver was loaded: what a process has of an earlier one is void. */
uint32_t presence_starts(const struct machine *machine);

/* How often the card was lost, and all cards together. Cheap. */
uint32_t presence_losses(const struct machine *machine, int device);
uint32_t presence_all_losses(const struct machine *machine);

/* All cards and the driver are there. */
void presence_clear(struct machine *machine);
