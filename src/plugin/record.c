/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's own record of what each container has been given. */
#include "plugin/record.h"

#include <pod_resources.pb-c.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define LOG_TOPIC LOG_KUBELET

#define LIST	  "/v1.PodResourcesLister/List"
#define READ_NS	  (1000ull * 1000000)

static bool has_slices(const V1__ContainerResources *container, const char *resource_name)
{
	for (size_t i = 0; i < container->n_devices; i++)
		if (!strcmp(container->devices[i]->resource_name, resource_name) &&
			container->devices[i]->n_device_ids)
			return true;
	return false;
}

static void enter_container(
	struct pod *pod, const V1__ContainerResources *container, const char *resource_name)
{
	for (unsigned i = 0; i < pod->container_count; i++)
		if (!strcmp(pod->containers[i].name, container->name))
			pod->containers[i].has_slices = has_slices(container, resource_name);
}

static void take_list(void *context, const void *message, size_t bytes)
{
	const struct record *record = context;
	V1__ListPodResourcesResponse *list =
		v1__list_pod_resources_response__unpack(NULL, bytes, message);

	for (size_t i = 0; list && i < list->n_pod_resources; i++) {
		const V1__PodResources *row = list->pod_resources[i];
		struct pod *pod = pods_find(record->cluster->pods, row->namespace_, row->name);

		for (size_t j = 0; pod && j < row->n_containers; j++)
			enter_container(
				pod, row->containers[j], record->cluster->config->resource_count);
	}
	if (list)
		v1__list_pod_resources_response__free_unpacked(list, NULL);
}

static void ended(void *context, int status, const char *words)
{
	struct record *record = context;

	record->request = NULL;
	if (status != RPC_OK && !record->is_missed)
		log_warn("the kubelet does not tell its record of slices", STR("why", words),
			U64("status", status));
	record->is_missed = status != RPC_OK;
	record->done(record->context);
}

bool record_read(struct record *record)
{
	static const struct rpc_listener listener = {take_list, ended};

	return !access(record->cluster->record_path, F_OK) &&
	       !rpc_send(record->cluster->rpc, record->cluster->record_path, LIST, "", 0, READ_NS,
		       &listener, record, &record->request);
}

void record_cancel(struct record *record)
{
	rpc_request_free(record->request);
	record->request = NULL;
}
