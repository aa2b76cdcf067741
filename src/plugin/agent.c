/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's part in the cluster. */
#include "plugin/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "plugin/allocate.h"
#include "plugin/cluster/cluster.h"
#include "plugin/reconcile.h"
#include "plugin/register.h"
#include "plugin/resize.h"

#define LOG_TOPIC    LOG_PODS

#define SECOND_NS    1000000000ull
#define EVENTS_PER_S 1 /* of a client of their own: they delay nothing */
#define EVENTS_BURST 10

struct agent {
	struct cluster cluster;
	struct allocate *allocate;
	struct reconcile *reconcile;
	struct registration *registration;
	struct kube_client *event_client;
	struct event_log *events;
	struct resize *resize;
	char record_path[108];
	void (*pods_changed)(void *context, const struct pods *pods);
	void *context;
};

static void look_again(void *context)
{
	struct agent *agent = context;

	if (agent->reconcile)
		reconcile_look(agent->reconcile);
}

static void pods_have_changed(void *context)
{
	struct agent *agent = context;

	allocate_look_again(agent->allocate);
	look_again(agent);
	if (agent->pods_changed)
		agent->pods_changed(agent->context, agent->cluster.pods);
	resize_look(agent->resize);
}

static void node_has_changed(void *context)
{
	struct agent *agent = context;

	registration_compare(agent->registration);
	look_again(agent);
}

static int read_access(struct kube_access *ret_access, struct err *err)
{
	const char *path = getenv("KUBECONFIG"), *host = getenv("KUBERNETES_SERVICE_HOST");

	if (path && *path)
		return kube_access_read(path, ret_access, err);
	if (host && *host)
		return kube_access_in_pod(KUBE_ACCOUNT_FOLDER, host,
			getenv("KUBERNETES_SERVICE_PORT"), ret_access, err);
	return err_set(err, ENOENT,
		"there is no API server: neither KUBECONFIG nor a service account names one");
}

/* Of pods and the node most is in these. */
static const char *const unused[] = {"managedFields", "conditions", "images", "volumesInUse",
	"volumesAttached", "envFrom", "volumes", "tolerations", "command", "args",
	"containerStatuses", "initContainerStatuses", NULL};

/* An attempt is short, because the kubelet waits for most of them. */
static int connect_to_server(struct agent *agent, struct err *err)
{
	struct kube_settings settings = kube_settings_default;
	struct kube_access access = KUBE_ACCESS_NULL;
	int result = read_access(&access, err);

	settings.deadline_ns = 6 * SECOND_NS;
	settings.attempt_ns = 2 * SECOND_NS;
	settings.first_pause_ns = SECOND_NS / 20;
	settings.most_pause_ns = 2 * SECOND_NS;
	settings.unused = unused;
	if (!result)
		result = kube_client_new(
			agent->cluster.loop, &access, &settings, &agent->cluster.client, err);
	settings = kube_settings_default;
	settings.calls_per_s = EVENTS_PER_S;
	settings.burst = EVENTS_BURST;
	if (!result)
		result = kube_client_new(
			agent->cluster.loop, &access, &settings, &agent->event_client, err);
	kube_access_deinit(&access);
	return result;
}

/* ".../device-plugins/kubelet.sock" and ".../pod-resources/kubelet.sock". */
static void name_record(struct agent *agent, const char *kubelet_path)
{
	const char *end = strrchr(kubelet_path, '/');

	while (end && end > kubelet_path && end[-1] != '/')
		end--;
	snprintf(agent->record_path, sizeof(agent->record_path), "%.*spod-resources/kubelet.sock",
		end ? (int)(end - kubelet_path) : 0, kubelet_path);
	agent->cluster.record_path = agent->record_path;
}

static int make_parts(struct agent *agent, const struct agent_request *request)
{
	static const struct pods_events events = {pods_have_changed};
	struct cluster *cluster = &agent->cluster;
	const struct config *config = request->config;
	const struct pod_resources resources = {config->resource_count, config->resource_priority,
		config->resource_memory, config->resource_memory_percentage, config->resource_cores,
		config->hook_path};
	int result = node_start(
		cluster->client, config->node_name, node_has_changed, agent, &cluster->node);

	if (!result)
		result = registration_start(cluster->client, cluster->node, &agent->registration);
	if (!result)
		result = allocate_new(cluster, request->giver, look_again, agent, &agent->allocate);
	if (!result)
		result = reconcile_new(cluster, agent->allocate, &agent->reconcile);
	if (!result)
		result = event_log_new(agent->event_client, "vgpu-device-plugin", &agent->events);
	if (!result)
		result = resize_new(cluster, request->giver, agent->events, &agent->resize);
	if (!result)
		result = pods_start(cluster->client, config->node_name, &resources, &events, agent,
			&cluster->pods);
	return result;
}

int agent_start(struct loop *loop, struct rpc *rpc, const struct agent_request *request,
	struct agent **ret_agent, struct err *err)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	int result;

	if (!agent)
		return err_set(err, ENOMEM, "no memory");
	agent->cluster.loop = loop;
	agent->cluster.rpc = rpc;
	agent->cluster.config = request->config;
	agent->pods_changed = request->pods_changed;
	agent->context = request->context;
	name_record(agent, request->config->kubelet_socket);
	result = connect_to_server(agent, err);
	if (!result && make_parts(agent, request))
		result = err_set(err, ENOMEM, "no memory");
	if (result)
		agent_stop(agent);
	else
		*ret_agent = agent;
	return result;
}

void agent_stop(struct agent *agent)
{
	if (!agent)
		return;
	resize_free(agent->resize);
	pods_stop(agent->cluster.pods);
	reconcile_free(agent->reconcile);
	allocate_free(agent->allocate);
	registration_stop(agent->registration);
	node_stop(agent->cluster.node);
	event_log_free(agent->events);
	if (agent->event_client)
		kube_client_free(agent->event_client);
	kube_client_free(agent->cluster.client);
	free(agent);
}

const struct cluster *agent_cluster(const struct agent *agent)
{
	return &agent->cluster;
}

struct allocate *agent_allocate(struct agent *agent)
{
	return agent->allocate;
}

void agent_register(struct agent *agent, char *text, const char *scores)
{
	registration_set(agent->registration, text, scores);
}

int agent_list_pods(struct agent *agent, bool is_all, const char ***ret_uids, size_t *ret_count)
{
	const struct pods *pods = agent->cluster.pods;
	const char **uids;
	size_t count = 0;

	if (!pods_are_known(pods))
		return -EAGAIN;
	for (const struct pod *pod = pods_first(pods); pod; pod = pod->next)
		count++;
	uids = calloc(count + 1, sizeof(*uids));
	if (!uids)
		return -ENOMEM;
	count = 0;
	for (const struct pod *pod = pods_first(pods); pod; pod = pod->next)
		if (is_all || !pod->is_over)
			uids[count++] = pod->uid;
	*ret_uids = uids;
	*ret_count = count;
	return 0;
}
