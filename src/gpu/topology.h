/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the devices of this machine are joined, as NVML tells it. What it does not tell of one device or pair is unknown
 * there and nowhere else: one device that is lost hides nothing of the others.
 */
#pragma once

#include "gpu/inventory.h"
#include "policy/topology.h"

_Static_assert(INVENTORY_MAX <= TOPOLOGY_MAX, "every device has its place");

#define DEVICE_BUS_ID_BYTES 32
struct device_place {
	char bus_id[DEVICE_BUS_ID_BYTES]; /* "00000000:18:00.0"; empty: unknown */
	int numa_node;			  /* of the host; -1: unknown */
};

/* NVML is begun; so below. */
void topology_read_place(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct inventory_device *device, struct device_place *ret_place);

/* Costs a call for each pair and three for each link. The devices' places in it are those in the inventory. */
void topology_read(const struct nvml_driver *nvml, const struct nvml_node *node,
	const struct inventory *inventory, struct topology *ret_topology);
