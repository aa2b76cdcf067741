/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How cards are joined: to the host by PCIe, to its sockets, and to each other.
 *
 * The machine knows how (sim/machine/topology.h); here it is said in NVML's words. Cards are spread evenly
 * over the sockets, and so are the host's processors.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/topology.h"
#include "sim/nvml/entry.h"

/* Where the switches sit, four links to each: buses that no board gives to cards. */
#define SWITCH_BUS_FIRST 0xf0u
#define SWITCH_LINKS	 4u
#define SWITCH_PCI_ID	 0x22a310deu /* an NVSwitch of the third generation */

#define WORD_BITS	 (sizeof(unsigned long) * CHAR_BIT)

ENTRY_ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, node_board()->pcie_generation)
ENTRY_ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, node_board()->pcie_width)
ENTRY_ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, node_board()->pcie_generation)
ENTRY_ANSWER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, node_board()->pcie_generation)
ENTRY_ANSWER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, node_board()->pcie_width)

ENTRY_ANSWER(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)
ENTRY_ANSWER(nvmlDeviceGetBusType, nvmlBusType_t, NVML_BUS_TYPE_PCIE)

/* Copies to and from the host are not told from other work: the bus looks idle. */
ENTRY_DEVICE(nvmlDeviceGetPcieThroughput, (nvmlPcieUtilCounter_t counter, unsigned int *kib_per_s),
	(counter, kib_per_s))
{
	if (!kib_per_s || (unsigned int)counter >= NVML_PCIE_UTIL_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	*kib_per_s = 0;
	return NVML_SUCCESS;
}

static int numa_node(int index)
{
	return board_numa_node(node_board(), index);
}

static nvmlGpuTopologyLevel_t ancestor(int a, int b)
{
	static const nvmlGpuTopologyLevel_t levels[] = {
		[TOPOLOGY_SAME] = NVML_TOPOLOGY_INTERNAL,
		[TOPOLOGY_BOARD] = NVML_TOPOLOGY_INTERNAL,
		[TOPOLOGY_SWITCH] = NVML_TOPOLOGY_SINGLE,
		[TOPOLOGY_TREE] = NVML_TOPOLOGY_MULTIPLE,
		[TOPOLOGY_BRIDGE] = NVML_TOPOLOGY_HOSTBRIDGE,
		[TOPOLOGY_SOCKET] = NVML_TOPOLOGY_NODE,
		[TOPOLOGY_SYSTEM] = NVML_TOPOLOGY_SYSTEM,
	};

	return levels[topology_level(node_board(), a, b)];
}

static nvmlReturn_t check_pair(nvmlDevice_t a, nvmlDevice_t b, const void *ret_value)
{
	nvmlReturn_t result = node_check(a);

	if (result == NVML_SUCCESS)
		result = node_check(b);
	return ret_value || result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
}

/* A machine of one card has no topology to tell (measured). */
ENTRY_BODY(nvmlDeviceGetTopologyCommonAncestor,
	(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level), (a, b, level))
{
	nvmlReturn_t result = check_pair(a, b, level);

	if (result != NVML_SUCCESS)
		return result;
	if (node_count() == 1)
		return NVML_ERROR_NOT_SUPPORTED;
	*level = ancestor(node_index(a), node_index(b));
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetTopologyNearestGpus,
	(nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *devices),
	(level, count, devices))
{
	unsigned int there = 0;

	if (!count || (!devices && *count))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < node_count(); i++) {
		nvmlDevice_t other = node_handle(node_visible(i));

		if (node_visible(i) == index || ancestor(index, node_visible(i)) != level)
			continue;
		if (there < *count)
			devices[there] = other;
		there++;
	}
	if (!*count || there < *count)
		*count = there;
	return NVML_SUCCESS;
}

/* Atomics go by NVLink alone, as reading and writing do where the host's chips pass nothing on. */
static nvmlGpuP2PStatus_t peer_status(int a, int b, nvmlGpuP2PCapsIndex_t index)
{
	bool needs_links =
		index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS;

	if (a == b || index == NVML_P2P_CAPS_INDEX_UNKNOWN)
		return NVML_P2P_STATUS_NOT_SUPPORTED;
	if (topology_has_nvlink(node_board(), a, b))
		return index == NVML_P2P_CAPS_INDEX_PCI ? NVML_P2P_STATUS_NOT_SUPPORTED
							: NVML_P2P_STATUS_OK;
	if (needs_links || !node_board()->pcie_has_peers)
		return NVML_P2P_STATUS_NOT_SUPPORTED;
	return topology_has_peer(node_board(), a, b) ? NVML_P2P_STATUS_OK
						     : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
}

ENTRY_BODY(nvmlDeviceGetP2PStatus,
	(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status),
	(a, b, index, status))
{
	nvmlReturn_t result = check_pair(a, b, status);

	if (result != NVML_SUCCESS)
		return result;
	if ((unsigned int)index > NVML_P2P_CAPS_INDEX_UNKNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	*status = peer_status(node_index(a), node_index(b), index);
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlDeviceOnSameBoard, (nvmlDevice_t a, nvmlDevice_t b, int *is_same), (a, b, is_same))
{
	nvmlReturn_t result = check_pair(a, b, is_same);

	if (result != NVML_SUCCESS)
		return result;
	*is_same = topology_level(node_board(), node_index(a), node_index(b)) <= TOPOLOGY_BOARD;
	return NVML_SUCCESS;
}

/* The node of the card's memory: only cards that are NUMA nodes themselves have one (measured). */
ENTRY_NONE(nvmlDeviceGetNumaNodeId, unsigned int, NVML_ERROR_NOT_SUPPORTED)

static void set_bit(unsigned long *words, unsigned int count, unsigned long bit)
{
	if (bit / WORD_BITS < count)
		words[bit / WORD_BITS] |= 1ul << bit % WORD_BITS;
}

ENTRY_DEVICE(nvmlDeviceGetCpuAffinity, (unsigned int words, unsigned long *cpus), (words, cpus))
{
	long all = sysconf(_SC_NPROCESSORS_CONF);
	long node;

	if (!words || !cpus)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(cpus, 0, words * sizeof(*cpus));
	node = numa_node(index);
	for (long cpu = 0; cpu < all; cpu++)
		if (cpu * node_board()->numa_nodes / all == node)
			set_bit(cpus, words, (unsigned long)cpu);
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetCpuAffinityWithinScope,
	(unsigned int words, unsigned long *cpus, nvmlAffinityScope_t scope), (words, cpus, scope))
{
	if (scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvmlDeviceGetCpuAffinity_body(index, words, cpus);
}

ENTRY_DEVICE(nvmlDeviceGetMemoryAffinity,
	(unsigned int words, unsigned long *nodes, nvmlAffinityScope_t scope),
	(words, nodes, scope))
{
	if (!words || !nodes || scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(nodes, 0, words * sizeof(*nodes));
	set_bit(nodes, words, (unsigned long)numa_node(index));
	return NVML_SUCCESS;
}

/* Without NVLink every question about links is answered so, also about those that cannot be. */
static nvmlReturn_t check_link(unsigned int link, const void *ret_value)
{
	unsigned int count = (unsigned int)node_board()->nvlink_count;

	if (!ret_value)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!count)
		return NVML_ERROR_NOT_SUPPORTED;
	if (link >= NVML_NVLINK_MAX_LINKS)
		return NVML_ERROR_INVALID_ARGUMENT;
	return link < count ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

#define LINK_ANSWER(symbol, type, value)                                              \
	ENTRY_DEVICE(symbol, (unsigned int link, type *ret_value), (link, ret_value)) \
	{                                                                             \
		nvmlReturn_t result = check_link(link, ret_value);                    \
                                                                                      \
		if (result == NVML_SUCCESS)                                           \
			*ret_value = (type)(value);                                   \
		return result;                                                        \
	}

static int link_end(int index, unsigned int link)
{
	return topology_link_end(node_board(), index, (int)link);
}

static nvmlIntNvLinkDeviceType_t end_type(int end)
{
	if (end == TOPOLOGY_UNUSED)
		return NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
	return end == TOPOLOGY_TO_SWITCH ? NVML_NVLINK_DEVICE_TYPE_SWITCH
					 : NVML_NVLINK_DEVICE_TYPE_GPU;
}

LINK_ANSWER(nvmlDeviceGetNvLinkState, nvmlEnableState_t,
	link_end(index, link) == TOPOLOGY_UNUSED ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED)
LINK_ANSWER(nvmlDeviceGetNvLinkVersion, unsigned int, node_board()->nvlink_version)
LINK_ANSWER(nvmlDeviceGetNvLinkRemoteDeviceType, nvmlIntNvLinkDeviceType_t,
	end_type(link_end(index, link)))

ENTRY_DEVICE(nvmlDeviceGetNvLinkCapability,
	(unsigned int link, nvmlNvLinkCapability_t capability, unsigned int *has),
	(link, capability, has))
{
	nvmlReturn_t result = check_link(link, has);

	if (result != NVML_SUCCESS)
		return result;
	if ((unsigned int)capability > NVML_NVLINK_CAP_VALID)
		return NVML_ERROR_INVALID_ARGUMENT;
	*has = capability != NVML_NVLINK_CAP_SLI_BRIDGE;
	return NVML_SUCCESS;
}

static void fill_far_end(nvmlPciInfo_t *pci, int end, unsigned int link)
{
	*pci = (nvmlPciInfo_t){0};
	if (end >= 0) {
		board_pci(node_board(), end, &pci->bus, &pci->device);
		pci->pciDeviceId = (unsigned int)node_board()->pci_device_id;
	} else {
		pci->bus = SWITCH_BUS_FIRST + link / SWITCH_LINKS;
		pci->pciDeviceId = SWITCH_PCI_ID;
	}
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:%02X.0", pci->bus & 0xff,
		pci->device & 0x1f);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:%02X.0", pci->bus & 0xff,
		pci->device & 0x1f);
}

/* A link that goes nowhere has no far end to be told. */
ENTRY_DEVICE(
	nvmlDeviceGetNvLinkRemotePciInfo_v2, (unsigned int link, nvmlPciInfo_t *pci), (link, pci))
{
	nvmlReturn_t result = check_link(link, pci);

	if (result != NVML_SUCCESS)
		return result;
	if (link_end(index, link) == TOPOLOGY_UNUSED)
		return NVML_ERROR_NOT_SUPPORTED;
	fill_far_end(pci, link_end(index, link), link);
	return NVML_SUCCESS;
}
