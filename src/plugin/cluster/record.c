/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's own record of what each container has been given. */
#include "plugin/cluster/record.h"

#include <errno.h>
#include <stdlib.h>
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

static bool is_of(const V1__PodResources *row, const struct pod *pod)
{
	return !strcmp(row->name, pod->name) && !strcmp(row->namespace_, pod->space);
}

/* The kubelet may still have the one before of that name, whose slices are not the pod's. */
static void enter_container(struct pod *pod, const V1__ContainerResources *container,
	const char *resource_name, bool is_first)
{
	for (unsigned i = 0; i < pod->container_count; i++)
		if (!strcmp(pod->containers[i].name, container->name))
			pod->containers[i].has_slices = has_slices(container, resource_name) &&
							(is_first || pod->containers[i].has_slices);
}

static void enter_pod(const struct record *record, struct pod *pod)
{
	pod->is_unlisted = record->answer != NULL;
	for (size_t i = 0; record->answer && i < record->answer->n_pod_resources; i++) {
		const V1__PodResources *row = record->answer->pod_resources[i];

		if (!is_of(row, pod))
			continue;
		for (size_t j = 0; j < row->n_containers; j++)
			enter_container(pod, row->containers[j],
				record->cluster->config->resource_count, pod->is_unlisted);
		pod->is_unlisted = false;
	}
}

void record_enter(const struct record *record)
{
	for (struct pod *pod = pods_first(record->cluster->pods); pod; pod = pod->next)
		enter_pod(record, pod);
}

static bool is_unknown(const struct record *record, const V1__PodResources *row)
{
	if (pods_find(record->cluster->pods, row->namespace_, row->name))
		return false;
	for (size_t i = 0; i < row->n_containers; i++)
		if (has_slices(row->containers[i], record->cluster->config->resource_count))
			return true;
	return false;
}

int record_list_unknown(
	const struct record *record, struct prepare_name **ret_names, size_t *ret_count)
{
	size_t rows = record->answer ? record->answer->n_pod_resources : 0, count = 0;
	struct prepare_name *names = calloc(rows + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++) {
		const V1__PodResources *row = record->answer->pod_resources[i];

		if (is_unknown(record, row))
			names[count++] = (struct prepare_name){row->namespace_, row->name};
	}
	*ret_names = names;
	*ret_count = count;
	return 0;
}

static void forget_answer(struct record *record)
{
	if (record->answer)
		v1__list_pod_resources_response__free_unpacked(record->answer, NULL);
	record->answer = NULL;
}

static void take_list(void *context, const void *message, size_t bytes)
{
	struct record *record = context;

	forget_answer(record);
	record->answer = v1__list_pod_resources_response__unpack(NULL, bytes, message);
}

static void ended(void *context, int status, const char *words)
{
	struct record *record = context;

	record->request = NULL;
	if (status != RPC_OK && !record->is_missed)
		log_warn("the kubelet does not tell its record of slices", STR("why", words),
			U64("status", status));
	record->is_missed = status != RPC_OK;
	if (status != RPC_OK)
		forget_answer(record);
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
	forget_answer(record);
}
