/* SPDX-License-Identifier: Apache-2.0 */
/* Which cards of the machine a process sees at all. */
#pragma once

#include <stdbool.h>

#include "sim/machine/board.h"

/*
 * The cards that $NVIDIA_VISIBLE_DEVICES leaves, as NVIDIA's container runtime does: "all" or no such
 * variable, a list of indices and UUIDs, or none ("", "none", "void"). They stay in the order of the
 * machine. Returns how many; ret_indices has room for BOARD_DEVICES_MAX.
 */
int visible_cards(const struct board *board, int *ret_indices);

/* The same for a part of a card (sim/machine/mig.h): whether the list leaves it. */
bool visible_part(const struct board *board, int index, unsigned int id, unsigned int compute);
