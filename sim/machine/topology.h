/* SPDX-License-Identifier: Apache-2.0 */
/* How the cards of a machine are joined: by PCIe, by the host's sockets, by NVLink. */
#pragma once

#include <stdbool.h>

#include "sim/machine/board.h"

/*
 * What two cards have in common, from the nearest on. Cards of one kind of group have consecutive
 * numbers: the first pci_switch_cards hang on one switch, the next on another. A group never spans sockets.
 */
enum topology_level {
	TOPOLOGY_SAME,
	TOPOLOGY_BOARD,
	TOPOLOGY_SWITCH,
	TOPOLOGY_TREE,
	TOPOLOGY_BRIDGE,
	TOPOLOGY_SOCKET,
	TOPOLOGY_SYSTEM,
};
enum topology_level topology_level(const struct board *board, int a, int b);

/* The far end of a link of a card: a card, or TOPOLOGY_TO_SWITCH, or TOPOLOGY_UNUSED. */
#define TOPOLOGY_TO_SWITCH (-1)
#define TOPOLOGY_UNUSED	   (-2)
int topology_link_end(const struct board *board, int device, int link);

/* Two cards reach each other's memory: by NVLink, direct or through switches, or by PCIe. */
bool topology_has_nvlink(const struct board *board, int a, int b);
bool topology_has_peer(const struct board *board, int a, int b);
