/* SPDX-License-Identifier: Apache-2.0 */
/* How the cards of a machine are joined. */
#include "sim/machine/topology.h"

static bool is_same_group(int a, int b, int size)
{
	return a / size == b / size;
}

enum topology_level topology_level(const struct board *board, int a, int b)
{
	if (a == b)
		return TOPOLOGY_SAME;
	if (board_numa_node(board, a) != board_numa_node(board, b))
		return TOPOLOGY_SYSTEM;
	if (is_same_group(a, b, board->pci_board_cards))
		return TOPOLOGY_BOARD;
	if (is_same_group(a, b, board->pci_switch_cards))
		return TOPOLOGY_SWITCH;
	if (is_same_group(a, b, board->pci_tree_cards))
		return TOPOLOGY_TREE;
	return is_same_group(a, b, board->pci_bridge_cards) ? TOPOLOGY_BRIDGE : TOPOLOGY_SOCKET;
}

/* Each peer of a mesh has as many links as any other; links that are over go nowhere. */
int topology_link_end(const struct board *board, int device, int link)
{
	int mesh = board->nvlink_mesh;
	int first, each, peer;

	if (!mesh)
		return link < board->nvlink_count ? TOPOLOGY_TO_SWITCH : TOPOLOGY_UNUSED;
	if (mesh == 1)
		return TOPOLOGY_UNUSED;
	first = device / mesh * mesh;
	each = board->nvlink_count / (mesh - 1);
	if (!each || link >= each * (mesh - 1))
		return TOPOLOGY_UNUSED;
	peer = first + link / each;
	peer += peer >= device;
	return peer < board->device_count ? peer : TOPOLOGY_UNUSED;
}

bool topology_has_nvlink(const struct board *board, int a, int b)
{
	if (a == b)
		return false;
	for (int link = 0; link < board->nvlink_count; link++) {
		int end = topology_link_end(board, a, link);

		if (end == TOPOLOGY_TO_SWITCH || end == b)
			return true;
	}
	return false;
}

bool topology_has_peer(const struct board *board, int a, int b)
{
	if (a == b)
		return false;
	return topology_has_nvlink(board, a, b) ||
	       (board->pcie_has_peers && topology_level(board, a, b) < TOPOLOGY_SYSTEM);
}
