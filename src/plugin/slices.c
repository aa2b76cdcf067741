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
};

static char healthy[] = "Healthy";

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

int slices_pack(const struct inventory *devices, unsigned split_count, uint8_t **ret_message,
	size_t *ret_bytes)
{
	size_t count = (size_t)devices->count * split_count;
	_cleanup_free_ struct slice *slices = calloc(count + 1, sizeof(*slices));
	_cleanup_free_ V1beta1__Device **list = calloc(count + 1, sizeof(*list));
	V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;

	if (!slices || !list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct inventory_device *device = &devices->device[i / split_count];

		snprintf(slices[i].id, ID_BYTES, "%s-%zu", device->uuid, i % split_count);
		v1beta1__device__init(&slices[i].message);
		slices[i].message.id = slices[i].id;
		slices[i].message.health = healthy;
		list[i] = &slices[i].message;
	}
	response.n_devices = count;
	response.devices = list;
	return pack(&response, ret_message, ret_bytes);
}
