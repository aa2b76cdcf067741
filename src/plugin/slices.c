/* SPDX-License-Identifier: Apache-2.0 */
/* The list of slices that the kubelet is given. */
#include "plugin/slices.h"

#include <device_plugin.pb-c.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define ID_BYTES (UUID_TEXT_BYTES + 12) /* "-", and a number */

struct slice {
	V1beta1__Device message;
	char id[ID_BYTES];
	V1beta1__TopologyInfo topology;
	V1beta1__NUMANode node, *nodes[1];
};

static char healthy[] = "Healthy", unhealthy[] = "Unhealthy";

static int pack(V1beta1__ListAndWatchResponse *list, uint8_t **ret_message, size_t *ret_bytes)
{
	size_t bytes = v1beta1__list_and_watch_response__get_packed_size(list);
	uint8_t *message = malloc(bytes + 1); /* an empty list is no bytes */

	if (!message)
		return -ENOMEM;
	*ret_bytes = v1beta1__list_and_watch_response__pack(list, message);
	*ret_message = message;
	return 0;
}

static void fill(struct slice *slice, const struct slices *slices, unsigned device, unsigned number)
{
	snprintf(slice->id, ID_BYTES, "%s-%u", slices->devices->device[device].uuid, number);
	v1beta1__device__init(&slice->message);
	slice->message.id = slice->id;
	slice->message.health = slices->unhealthy >> device & 1 ? unhealthy : healthy;
	if (slices->numa[device] < 0)
		return;
	v1beta1__topology_info__init(&slice->topology);
	v1beta1__numanode__init(&slice->node);
	slice->node.id = slices->numa[device];
	slice->nodes[0] = &slice->node;
	slice->topology.nodes = slice->nodes;
	slice->topology.n_nodes = 1;
	slice->message.topology = &slice->topology;
}

int slices_pack(const struct slices *slices, uint8_t **ret_message, size_t *ret_bytes)
{
	size_t count = (size_t)slices->devices->count * slices->split_count;
	_cleanup_free_ struct slice *each = calloc(count + 1, sizeof(*each));
	_cleanup_free_ V1beta1__Device **list = calloc(count + 1, sizeof(*list));
	V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;

	if (!each || !list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		fill(&each[i], slices, (unsigned)(i / slices->split_count),
			(unsigned)(i % slices->split_count));
		list[i] = &each[i].message;
	}
	response.n_devices = count;
	response.devices = list;
	return pack(&response, ret_message, ret_bytes);
}
