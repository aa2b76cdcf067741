/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_kubelet SOCKET FILE: serves the record of what containers were given, which is in FILE at that moment: lines of
 * "NAMESPACE POD CONTAINER RESOURCE ID". Where the file is not there, a call is left without an answer; where it is empty, refused.
 */
#include <errno.h>
#include <pod_resources.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "net/rpc.h"
#include "net/service.h"

#define ROWS	   128
#define TEXT_BYTES 128

struct kubelet {
	const char *socket_path, *file;
	struct rpc *rpc;
	struct rpc_server *server;
};

struct row {
	char space[TEXT_BYTES], pod[TEXT_BYTES], container[TEXT_BYTES], resource[TEXT_BYTES],
		id[TEXT_BYTES];
	char *ids[1];
	V1__ContainerDevices devices, *device_list[1];
	V1__ContainerResources resources, *resource_list[1];
	V1__PodResources message;
};

static void fill(struct row *row)
{
	v1__container_devices__init(&row->devices);
	row->ids[0] = row->id;
	row->devices.resource_name = row->resource;
	row->devices.device_ids = row->ids;
	row->devices.n_device_ids = 1;
	row->device_list[0] = &row->devices;
	v1__container_resources__init(&row->resources);
	row->resources.name = row->container;
	row->resources.devices = row->device_list;
	row->resources.n_devices = strcmp(row->id, "-") != 0;
	row->resource_list[0] = &row->resources;
	v1__pod_resources__init(&row->message);
	row->message.name = row->pod;
	row->message.namespace_ = row->space;
	row->message.containers = row->resource_list;
	row->message.n_containers = 1;
}

static void answer(struct rpc_call *call, FILE *file)
{
	static struct row rows[ROWS];
	V1__ListPodResourcesResponse list = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
	V1__PodResources *pods[ROWS];
	uint8_t message[ROWS * 256];

	list.pod_resources = pods;
	while (list.n_pod_resources < ROWS) {
		struct row *row = &rows[list.n_pod_resources];

		if (fscanf(file, "%127s %127s %127s %127s %127s", row->space, row->pod,
			    row->container, row->resource, row->id) != 5)
			break;
		fill(row);
		pods[list.n_pod_resources++] = &row->message;
	}
	if (list.n_pod_resources &&
		v1__list_pod_resources_response__get_packed_size(&list) <= sizeof(message))
		rpc_answer(call, message, v1__list_pod_resources_response__pack(&list, message));
	else
		rpc_refuse(call, RPC_INTERNAL, "the file is empty");
}

static void list_is_asked(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	const struct kubelet *kubelet = context;
	FILE *file = fopen(kubelet->file, "r");

	if (!file)
		return;
	answer(call, file);
	fclose(file);
}

static void gone(void *context, struct rpc_call *call)
{
}

static int start(struct loop *loop, const void *settings, void **ret_kubelet, struct err *err)
{
	static const struct rpc_method methods[] = {{"/v1.PodResourcesLister/List", list_is_asked}};
	static const struct rpc_service service = {methods, 1, gone};
	static struct kubelet kubelet;

	kubelet = *(const struct kubelet *)settings;
	*ret_kubelet = &kubelet;
	if (rpc_new(loop, &kubelet.rpc))
		return err_set(err, ENOMEM, "no memory");
	return rpc_serve(
		kubelet.rpc, kubelet.socket_path, &service, &kubelet, &kubelet.server, err);
}

static void stop(void *context)
{
	struct kubelet *kubelet = context;

	rpc_server_free(kubelet->server);
	rpc_free(kubelet->rpc);
}

int main(int argc, char **argv)
{
	static const struct service service = {start, stop};
	struct kubelet kubelet = {argc == 3 ? argv[1] : "", argc == 3 ? argv[2] : "", NULL, NULL};
	struct err err = ERR_NULL;

	return argc == 3 && !service_run(&service, &kubelet, &err) ? 0 : 1;
}
