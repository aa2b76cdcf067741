/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's answers to the kubelet. */
#include "plugin/service.h"

#include <device_plugin.pb-c.h>
#include <stdlib.h>
#include <string.h>

#define METHOD(name) "/v1beta1.DevicePlugin/" name

static void get_options(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	uint8_t packed[16];

	options.get_preferred_allocation_available = true;
	rpc_answer(call, packed, v1beta1__device_plugin_options__pack(&options, packed));
}

static void list_and_watch(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	struct service *service = context;

	for (size_t i = 0; i < SERVICE_WATCHERS; i++)
		if (!service->watchers[i]) {
			service->watchers[i] = call;
			rpc_push(call, service->list, service->list_bytes);
			return;
		}
	rpc_refuse(call, RPC_FAILED_PRECONDITION, "too many watch this plugin already");
}

/* A container that is let in without a limit would be worse than one that is not. */
static void allocate(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	const struct service *service = context;

	if (service->allocate)
		allocate_take(service->allocate, call, message, bytes);
	else
		rpc_refuse(call, RPC_FAILED_PRECONDITION,
			"this plugin does not know the cluster, so it hands out no slices");
}

static void prefer(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	const struct service *service = context;

	if (service->allocate)
		allocate_prefer(service->allocate, call, message, bytes);
	else
		rpc_answer(call, "", 0);
}

/* It is not asked for. */
static void start_container(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	rpc_answer(call, "", 0);
}

static void gone(void *context, struct rpc_call *call)
{
	struct service *service = context;
	bool was_watching = false, is_watched = false;

	for (size_t i = 0; i < SERVICE_WATCHERS; i++) {
		if (service->watchers[i] == call) {
			service->watchers[i] = NULL;
			was_watching = true;
		}
		is_watched |= service->watchers[i] != NULL;
	}
	if (was_watching && !is_watched && service->left)
		service->left(service->left_context);
	if (service->allocate)
		allocate_forget(service->allocate, call);
}

void service_set_list(struct service *service, uint8_t *list, size_t bytes)
{
	free(service->list);
	service->list = list;
	service->list_bytes = bytes;
	for (size_t i = 0; i < SERVICE_WATCHERS; i++)
		if (service->watchers[i])
			rpc_push(service->watchers[i], list, bytes);
}

void service_forget_calls(struct service *service)
{
	memset(service->watchers, 0, sizeof(service->watchers));
	if (service->allocate)
		allocate_forget(service->allocate, NULL);
}

static const struct rpc_method methods[] = {
	{METHOD("GetDevicePluginOptions"), get_options},
	{METHOD("ListAndWatch"), list_and_watch},
	{METHOD("Allocate"), allocate},
	{METHOD("GetPreferredAllocation"), prefer},
	{METHOD("PreStartContainer"), start_container},
};

const struct rpc_service service_methods = {
	.methods = methods, .method_count = sizeof(methods) / sizeof(*methods), .gone = gone};
