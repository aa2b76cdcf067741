/* SPDX-License-Identifier: Apache-2.0 */
/* How the devices of this machine are joined, as NVML tells it. */
#include "gpu/topology.h"

#include <stdio.h>
#include <string.h>

/* Hosts have fewer nodes. */
#define NODE_WORDS 4

static bool find(const struct nvml_driver *nvml, const struct inventory_device *device,
	nvmlDevice_t *ret_handle)
{
	return nvml->nvmlDeviceGetHandleByIndex_v2(device->index, ret_handle) == NVML_SUCCESS;
}

static int first_node(const struct nvml_node *node, nvmlDevice_t handle)
{
	unsigned long words[NODE_WORDS] = {0};
	const unsigned bits = 8 * sizeof(*words);

	if (!node->nvmlDeviceGetMemoryAffinity ||
		node->nvmlDeviceGetMemoryAffinity(
			handle, NODE_WORDS, words, NVML_AFFINITY_SCOPE_NODE) != NVML_SUCCESS)
		return -1;
	for (unsigned i = 0; i < NODE_WORDS * bits; i++)
		if (words[i / bits] >> i % bits & 1)
			return (int)i;
	return -1;
}

static void read_bus_id(
	const struct nvml_node *node, nvmlDevice_t handle, char ret_bus_id[DEVICE_BUS_ID_BYTES])
{
	nvmlPciInfo_t pci;

	ret_bus_id[0] = '\0';
	if (node->nvmlDeviceGetPciInfo_v3 &&
		node->nvmlDeviceGetPciInfo_v3(handle, &pci) == NVML_SUCCESS)
		snprintf(ret_bus_id, DEVICE_BUS_ID_BYTES, "%.31s", pci.busId);
}

void topology_read_place(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct inventory_device *device, struct device_place *ret_place)
{
	nvmlDevice_t handle;

	*ret_place = (struct device_place){.numa_node = -1};
	if (!find(nvml, device, &handle))
		return;
	ret_place->numa_node = first_node(node, handle);
	read_bus_id(node, handle, ret_place->bus_id);
}

struct reading {
	const struct nvml_node *node;
	struct topology *topology;
	nvmlDevice_t handle[INVENTORY_MAX]; /* NULL: the device does not answer */
	char bus_id[INVENTORY_MAX][DEVICE_BUS_ID_BYTES];
};

static uint8_t way_of(nvmlGpuTopologyLevel_t level)
{
	switch (level) {
	case NVML_TOPOLOGY_INTERNAL:
		return TOPOLOGY_WAY_BOARD;
	case NVML_TOPOLOGY_SINGLE:
		return TOPOLOGY_WAY_SWITCH;
	case NVML_TOPOLOGY_MULTIPLE:
		return TOPOLOGY_WAY_SWITCHES;
	case NVML_TOPOLOGY_HOSTBRIDGE:
		return TOPOLOGY_WAY_BRIDGE;
	case NVML_TOPOLOGY_NODE:
		return TOPOLOGY_WAY_SOCKET;
	case NVML_TOPOLOGY_SYSTEM:
		return TOPOLOGY_WAY_SOCKETS;
	}
	return TOPOLOGY_WAY_UNKNOWN;
}

static void read_ways(struct reading *r, unsigned a)
{
	nvmlGpuTopologyLevel_t level;

	if (!r->node->nvmlDeviceGetTopologyCommonAncestor)
		return;
	for (unsigned b = 0; b < r->topology->count; b++)
		if (a != b && r->handle[a] && r->handle[b] &&
			r->node->nvmlDeviceGetTopologyCommonAncestor(
				r->handle[a], r->handle[b], &level) == NVML_SUCCESS)
			r->topology->pair[a][b].way = way_of(level);
}

/* A bridge of another kind than a card's or a switch's ends at none of ours. */
static void read_link(struct reading *r, unsigned a, unsigned link)
{
	const struct nvml_node *node = r->node;
	nvmlIntNvLinkDeviceType_t type;
	nvmlEnableState_t state;
	nvmlPciInfo_t far;

	if (node->nvmlDeviceGetNvLinkState(r->handle[a], link, &state) != NVML_SUCCESS ||
		state != NVML_FEATURE_ENABLED ||
		node->nvmlDeviceGetNvLinkRemotePciInfo_v2(r->handle[a], link, &far) != NVML_SUCCESS)
		return;
	for (unsigned b = 0; b < r->topology->count; b++)
		if (a != b && r->bus_id[b][0] &&
			!strncmp(far.busId, r->bus_id[b], sizeof(far.busId)))
			r->topology->pair[a][b].links++;
	if (node->nvmlDeviceGetNvLinkRemoteDeviceType &&
		node->nvmlDeviceGetNvLinkRemoteDeviceType(r->handle[a], link, &type) ==
			NVML_SUCCESS &&
		type == NVML_NVLINK_DEVICE_TYPE_SWITCH)
		r->topology->switch_links[a]++;
}

void topology_read(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct inventory *inventory, struct topology *ret_topology)
{
	struct reading r = {.node = node, .topology = ret_topology};

	memset(ret_topology, 0, sizeof(*ret_topology));
	ret_topology->count = inventory->count;
	for (unsigned i = 0; i < inventory->count; i++) {
		if (!find(nvml, &inventory->device[i], &r.handle[i]))
			r.handle[i] = NULL;
		else
			read_bus_id(node, r.handle[i], r.bus_id[i]);
	}
	for (unsigned i = 0; i < inventory->count; i++) {
		read_ways(&r, i);
		for (unsigned link = 0; link < TOPOLOGY_LINKS_MAX; link++)
			if (r.handle[i] && node->nvmlDeviceGetNvLinkState &&
				node->nvmlDeviceGetNvLinkRemotePciInfo_v2)
				read_link(&r, i, link);
	}
}
