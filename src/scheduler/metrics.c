/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics that the scheduler tells.
 *
 * Those that begin with "hami_" have the names and labels by which dashboards of HAMi know them, and with --legacy-metrics
 * also the names before those. Cores are percent there, though they are called ratios.
 */
#include "scheduler/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define MIB	   1048576.0
#define VALUE_TEXT 24

struct writer {
	FILE *out;
	const struct extender *extender;
	const struct family *family;
};

/* What is told of a device. */
struct told {
	const char *node;
	size_t index;
	const struct fit_device *device;
};

static double memory_limit(const struct fit_device *device)
{
	return (double)device->all.memory_mib * MIB;
}

static double core_limit(const struct fit_device *device)
{
	return (double)device->all.cores;
}

static double memory_used(const struct fit_device *device)
{
	return (double)device->used.memory_mib * MIB;
}

static double shared(const struct fit_device *device)
{
	return (double)device->used.slots;
}

static double cores_used(const struct fit_device *device)
{
	return (double)device->used.cores;
}

static double memory_share(const struct fit_device *device)
{
	return device->all.memory_mib
		       ? (double)device->used.memory_mib / (double)device->all.memory_mib
		       : 0;
}

/* Labels beyond the node's and the device's. */
enum { WITH_CORES = 1, WITH_LIMIT = 2, WITHOUT_TYPE = 4, WITH_SHARED = 8 };

static const struct family {
	const char *name, *legacy, *help;
	double (*value)(const struct fit_device *device);
	unsigned labels;
} families[] = {
	{"hami_gpu_memory_limit_bytes", "GPUDeviceMemoryLimit",
		"Device memory limit for a certain GPU", memory_limit, 0},
	{"hami_gpu_core_limit_ratio", "GPUDeviceCoreLimit", "Device core limit for a certain GPU",
		core_limit, 0},
	{"hami_gpu_memory_allocated_bytes", "GPUDeviceMemoryAllocated",
		"Device memory allocated for a certain GPU", memory_used, WITH_CORES},
	{"hami_gpu_shared_count", "GPUDeviceSharedNum", "Number of containers sharing this GPU",
		shared, 0},
	{"hami_gpu_core_allocated_ratio", "GPUDeviceCoreAllocated",
		"Device core allocated for a certain GPU", cores_used, 0},
	{"hami_node_gpu_overview", "nodeGPUOverview", "GPU overview on a certain node", memory_used,
		WITH_CORES | WITH_LIMIT | WITH_SHARED},
	{"hami_node_gpu_memory_allocated_ratio", "nodeGPUMemoryPercentage",
		"GPU Memory Allocated Percentage on a certain GPU", memory_share, 0},
};

/* name="value", with what the form cannot have in a value escaped. */
static void write_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

static void write_number_label(FILE *out, const char *name, int64_t value)
{
	char text[VALUE_TEXT];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	write_label(out, name, text);
}

static void write_head(FILE *out, const char *name, const char *help, const char *type)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_device(
	FILE *out, const struct family *family, bool is_legacy, const struct told *told)
{
	const struct fit_device *device = told->device;

	fprintf(out, "%s{zone=\"vGPU\"", is_legacy ? family->legacy : family->name);
	write_label(out, is_legacy ? "nodeid" : "node", told->node);
	write_label(out, is_legacy ? "deviceuuid" : "device_uuid", device->uuid);
	write_number_label(out, is_legacy ? "deviceidx" : "device_index", (int64_t)told->index);
	write_label(out, is_legacy ? "devicetype" : "device_type", device->model);
	if (family->labels & WITH_CORES)
		write_number_label(
			out, is_legacy ? "devicecores" : "device_cores", device->used.cores);
	if (family->labels & WITH_LIMIT)
		write_number_label(out, is_legacy ? "devicememorylimit" : "device_memory_limit",
			device->all.memory_mib);
	if (family->labels & WITH_SHARED)
		write_number_label(out, is_legacy ? "sharedcontainers" : "shared_containers",
			device->used.slots);
	fprintf(out, "} %.17g\n", family->value(device));
}

static void take_device(
	void *context, const char *node, size_t index, const struct fit_device *device)
{
	const struct writer *writer = context;

	write_device(writer->out, writer->family, false, &(struct told){node, index, device});
}

static void take_device_legacy(
	void *context, const char *node, size_t index, const struct fit_device *device)
{
	const struct writer *writer = context;

	write_device(writer->out, writer->family, true, &(struct told){node, index, device});
}

static void write_devices(struct writer *writer, struct books *books)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		writer->family = &families[i];
		write_head(writer->out, families[i].name, families[i].help, "gauge");
		books_each_device(books, take_device, writer);
		if (!writer->extender->settings->has_legacy_metrics)
			continue;
		write_head(writer->out, families[i].legacy, families[i].help, "gauge");
		books_each_device(books, take_device_legacy, writer);
	}
}

static void write_charge(FILE *out, const char *name, bool is_legacy, const struct books_pod *pod,
	const char *uuid, double value)
{
	fprintf(out, "%s{zone=\"vGPU\"", name);
	write_label(out, is_legacy ? "podnamespace" : "namespace", pod->namespace);
	write_label(out, is_legacy ? "nodename" : "node", pod->node);
	write_label(out, is_legacy ? "podname" : "pod", pod->name);
	write_label(out, is_legacy ? "containeridx" : "container_index", "0");
	write_label(out, is_legacy ? "deviceuuid" : "device_uuid", uuid);
	fprintf(out, "} %.17g\n", value);
}

#define CHARGE_TAKER(function, name, is_legacy, value)                                        \
	static void function(void *context, const struct books_pod *pod, const char *uuid,    \
		const struct rank_amount *amount)                                             \
	{                                                                                     \
		write_charge(((const struct writer *)context)->out, (name), (is_legacy), pod, \
			uuid, (value));                                                       \
	}

CHARGE_TAKER(
	take_memory, "hami_vgpu_memory_allocated_bytes", false, (double)amount->memory_mib *MIB)
CHARGE_TAKER(take_cores, "hami_vgpu_core_allocated_ratio", false, (double)amount->cores)
CHARGE_TAKER(take_memory_legacy, "vGPUMemoryAllocated", true, (double)amount->memory_mib *MIB)
CHARGE_TAKER(take_cores_legacy, "vGPUCoreAllocated", true, (double)amount->cores)

static void write_charges(struct writer *writer, const struct books *books)
{
	static const struct {
		const char *name, *help;
		books_charge_fn *take;
		bool is_legacy;
	} rows[] = {
		{"hami_vgpu_memory_allocated_bytes", "vGPU memory allocated from a container",
			take_memory, false},
		{"hami_vgpu_core_allocated_ratio", "vGPU core allocated from a container",
			take_cores, false},
		{"vGPUMemoryAllocated", "vGPU memory allocated from a container",
			take_memory_legacy, true},
		{"vGPUCoreAllocated", "vGPU core allocated from a container", take_cores_legacy,
			true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].is_legacy && !writer->extender->settings->has_legacy_metrics)
			continue;
		write_head(writer->out, rows[i].name, rows[i].help, "gauge");
		books_each_charge(books, rows[i].take, writer);
	}
}

/* Those that the device plugin has made. */
static void take_instance(
	void *context, const char *node, size_t index, const struct books_instance *instance)
{
	FILE *out = ((const struct writer *)context)->out;

	if (!instance->given)
		return;
	fputs("hami_node_gpu_mig_instance_info{zone=\"vGPU\"", out);
	write_label(out, "node", node);
	write_label(out, "device_uuid", instance->uuid);
	write_number_label(out, "device_index", (int64_t)index);
	write_label(out, "mig_uuid", instance->given);
	write_label(out, "profile", instance->profile ? instance->profile : "");
	write_number_label(out, "gpu_instance_id", instance->instance);
	write_number_label(out, "compute_instance_id", instance->compute);
	write_number_label(out, "placement_start", instance->place.start);
	write_number_label(out, "placement_size", instance->place.size);
	fputs("} 1\n", out);
}

static void write_instances(struct writer *writer, struct books *books)
{
	write_head(writer->out, "hami_node_gpu_mig_instance_info",
		"Realized MIG instance identity and scheduler placement", "gauge");
	books_each_instance(books, take_instance, writer);
}

static void write_quota(FILE *out, bool is_legacy, const char *namespace, const char *resource,
	int64_t limit, int64_t used)
{
	if (limit == INT64_MAX)
		return;
	fprintf(out, "%s{zone=\"vGPU\"", is_legacy ? "QuotaUsed" : "hami_resource_quota_used");
	write_label(out, is_legacy ? "quotanamespace" : "namespace", namespace);
	write_label(out, is_legacy ? "quotaName" : "quota_name", resource);
	write_number_label(out, "limit", limit);
	fprintf(out, "} %lld\n", (long long)used);
}

static void take_quota(void *context, const char *namespace, const struct fit_room *limit,
	const struct fit_room *used)
{
	const struct writer *writer = context;
	const struct demand_rules *rules = &writer->extender->settings->rules.demand;

	write_quota(
		writer->out, false, namespace, rules->memory, limit->memory_mib, used->memory_mib);
	write_quota(writer->out, false, namespace, rules->cores, limit->cores, used->cores);
}

static void take_quota_legacy(void *context, const char *namespace, const struct fit_room *limit,
	const struct fit_room *used)
{
	const struct writer *writer = context;
	const struct demand_rules *rules = &writer->extender->settings->rules.demand;

	write_quota(
		writer->out, true, namespace, rules->memory, limit->memory_mib, used->memory_mib);
	write_quota(writer->out, true, namespace, rules->cores, limit->cores, used->cores);
}

static void write_limit(FILE *out, const char *namespace, const char *resource, int64_t limit)
{
	if (limit == INT64_MAX)
		return;
	fputs("hami_resource_quota_limit{zone=\"vGPU\"", out);
	write_label(out, "namespace", namespace);
	write_label(out, "quota_name", resource);
	fprintf(out, "} %lld\n", (long long)limit);
}

static void take_limit(void *context, const char *namespace, const struct fit_room *limit,
	const struct fit_room *used)
{
	const struct writer *writer = context;
	const struct demand_rules *rules = &writer->extender->settings->rules.demand;

	write_limit(writer->out, namespace, rules->memory, limit->memory_mib);
	write_limit(writer->out, namespace, rules->cores, limit->cores);
}

static void write_quotas(struct writer *writer, const struct books *books)
{
	static const char help[] = "resourcequota usage for a certain device";

	write_head(writer->out, "hami_resource_quota_used", help, "gauge");
	books_each_quota(books, take_quota, writer);
	write_head(writer->out, "hami_resource_quota_limit",
		"resourcequota limit for a certain device", "gauge");
	books_each_quota(books, take_limit, writer);
	if (!writer->extender->settings->has_legacy_metrics)
		return;
	write_head(writer->out, "QuotaUsed", help, "gauge");
	books_each_quota(books, take_quota_legacy, writer);
}

static void write_histogram(FILE *out, const char *verb, const struct measure_histogram *took)
{
	static const char name[] = "vgpu_scheduler_request_duration_seconds";
	uint64_t total = 0;

	for (unsigned i = 0; i < MEASURE_BOUNDS; i++) {
		total += took->counts[i];
		fprintf(out, "%s_bucket{verb=\"%s\",le=\"%g\"} %llu\n", name, verb,
			(double)measure_bounds_us[i] / 1e6, (unsigned long long)total);
	}
	fprintf(out, "%s_bucket{verb=\"%s\",le=\"+Inf\"} %llu\n%s_sum{verb=\"%s\"} %g\n", name,
		verb, (unsigned long long)took->count, name, verb, (double)took->sum_us / 1e6);
	fprintf(out, "%s_count{verb=\"%s\"} %llu\n", name, verb, (unsigned long long)took->count);
}

static void write_number(
	FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	write_head(out, name, help, type);
	fprintf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void write_work(FILE *out, const struct extender *extender)
{
	static const char *const verbs[MEASURE_VERBS] = {"filter", "bind", "webhook", "preempt"};
	const struct measure *measure = extender->measure;

	write_head(out, "vgpu_scheduler_request_duration_seconds",
		"Time from a request to its answer", "histogram");
	for (unsigned i = 0; i < MEASURE_VERBS; i++)
		write_histogram(out, verbs[i], &measure->took[i]);
	write_head(out, "vgpu_scheduler_request_failures_total",
		"Requests that were answered with an error or a denial", "counter");
	for (unsigned i = 0; i < MEASURE_VERBS; i++)
		fprintf(out, "vgpu_scheduler_request_failures_total{verb=\"%s\"} %llu\n", verbs[i],
			(unsigned long long)measure->failed[i]);
	write_head(out, "vgpu_scheduler_node_rejections_total",
		"Nodes that a pod did not fit on, by reason", "counter");
	for (unsigned i = 0; i <= FIT_REASONS; i++)
		fprintf(out, "vgpu_scheduler_node_rejections_total{reason=\"%s\"} %llu\n",
			i < FIT_REASONS ? fit_reason_word((enum fit_reason)i) : "NodeUnregistered",
			(unsigned long long)measure->rejections[i]);
	write_number(out, "vgpu_scheduler_api_calls_total", "counter",
		"Requests to the API server, without events", kube_client_sent(extender->client));
	write_number(out, "vgpu_scheduler_requests_turned_away_total", "counter",
		"Requests of clients that made too many", measure->turned_away);
	write_number(out, "vgpu_scheduler_events_lost_total", "counter",
		"Events that could not be told", event_lost_count(extender->events));
}

static void write_state(FILE *out, const struct extender *extender)
{
	write_number(out, "vgpu_scheduler_binds_waiting", "gauge",
		"Binds that wait for a node's lock or an answer", extender_bind_count(extender));
	write_number(out, "vgpu_scheduler_reservations", "gauge",
		"Pods for which devices are kept until they are bound",
		holds_count(cluster_holds(extender->cluster)));
	write_number(out, "vgpu_scheduler_nodes", "gauge", "Nodes that are known",
		cluster_node_count(extender->cluster));
	write_number(out, "vgpu_scheduler_is_leader", "gauge", "1 where this replica serves pods",
		extender->leads);
	write_number(out, "vgpu_scheduler_is_known", "gauge",
		"1 where nodes, pods and quotas are listed", cluster_is_known(extender->cluster));
	write_head(out, "hami_build_info", "The program's version", "gauge");
	fprintf(out,
		"hami_build_info{version=\"%s\",revision=\"\",build_date=\"\",go_version=\"\","
		"compiler=\"\",platform=\"\"} 1\n",
		VGPU_VERSION);
}

int metrics_write(const struct extender *extender, char **ret_text)
{
	struct books *books = cluster_books(extender->cluster);
	char *text = NULL;
	size_t bytes;
	struct writer writer = {.out = open_memstream(&text, &bytes), .extender = extender};

	if (!writer.out)
		return -ENOMEM;
	write_devices(&writer, books);
	write_instances(&writer, books);
	write_charges(&writer, books);
	write_quotas(&writer, books);
	write_work(writer.out, extender);
	write_state(writer.out, extender);
	if (fclose(writer.out)) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}
