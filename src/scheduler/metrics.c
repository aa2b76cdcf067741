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
#include "base/exposition.h"

#define MIB	    1048576.0
#define ZONE	    "zone", "vGPU"
#define LABELS_MOST 8

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

#define METRIC EXPOSITION_FAMILY
#define LEGACY EXPOSITION_FAMILY
#define LABELS EXPOSITION_LABELS
#include "scheduler/metrics.def"

static const struct family {
	const struct exposition_family *family, *legacy;
	double (*value)(const struct fit_device *device);
	unsigned labels;
} families[] = {
	{&memory_limit_family, &old_memory_limit_family, memory_limit, 0},
	{&core_limit_family, &old_core_limit_family, core_limit, 0},
	{&memory_used_family, &old_memory_used_family, memory_used, WITH_CORES},
	{&shared_family, &old_shared_family, shared, 0},
	{&cores_used_family, &old_cores_used_family, cores_used, 0},
	{&overview_family, &old_overview_family, memory_used,
		WITH_CORES | WITH_LIMIT | WITH_SHARED},
	{&memory_share_family, &old_memory_share_family, memory_share, 0},
};

static void write_device(
	FILE *out, const struct family *family, bool is_legacy, const struct told *told)
{
	const struct fit_device *device = told->device;
	struct exposition_label labels[LABELS_MOST] = {{ZONE},
		{is_legacy ? "nodeid" : "node", told->node},
		{is_legacy ? "deviceuuid" : "device_uuid", device->uuid},
		{is_legacy ? "deviceidx" : "device_index", EXPOSITION_NUMBER(told->index)},
		{is_legacy ? "devicetype" : "device_type", device->model}};
	const struct {
		unsigned wanted;
		struct exposition_label label;
	} more[] = {
		{WITH_CORES, {is_legacy ? "devicecores" : "device_cores",
				     EXPOSITION_NUMBER(device->used.cores)}},
		{WITH_LIMIT, {is_legacy ? "devicememorylimit" : "device_memory_limit",
				     EXPOSITION_NUMBER(device->all.memory_mib)}},
		{WITH_SHARED, {is_legacy ? "sharedcontainers" : "shared_containers",
				      EXPOSITION_NUMBER(device->used.slots)}},
	};
	size_t count = 5;

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (family->labels & more[i].wanted)
			labels[count++] = more[i].label;
	exposition_write(out, (is_legacy ? family->legacy : family->family)->name, labels, count,
		family->value(device));
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
		exposition_write_head(writer->out, families[i].family);
		books_each_device(books, take_device, writer);
		if (!writer->extender->settings->has_legacy_metrics)
			continue;
		exposition_write_head(writer->out, families[i].legacy);
		books_each_device(books, take_device_legacy, writer);
	}
}

static void write_charge(FILE *out, const char *name, bool is_legacy, const struct books_pod *pod,
	const char *uuid, double value)
{
	EXPOSITION_WRITE(out, name, value, {ZONE},
		{is_legacy ? "podnamespace" : "namespace", pod->namespace},
		{is_legacy ? "nodename" : "node", pod->node},
		{is_legacy ? "podname" : "pod", pod->name},
		{is_legacy ? "containeridx" : "container_index", "0"},
		{is_legacy ? "deviceuuid" : "device_uuid", uuid});
}

#define CHARGE_TAKER(id, is_legacy, value)                                                         \
	static void take_##id(void *context, const struct books_pod *pod, const char *uuid,        \
		const struct rank_amount *amount)                                                  \
	{                                                                                          \
		write_charge(((const struct writer *)context)->out, id##_family.name, (is_legacy), \
			pod, uuid, (value));                                                       \
	}

CHARGE_TAKER(charged_memory, false, (double)amount->memory_mib *MIB)
CHARGE_TAKER(charged_cores, false, (double)amount->cores)
CHARGE_TAKER(old_charged_memory, true, (double)amount->memory_mib *MIB)
CHARGE_TAKER(old_charged_cores, true, (double)amount->cores)

static void write_charges(struct writer *writer, const struct books *books)
{
	static const struct {
		const struct exposition_family *family;
		books_charge_fn *take;
		bool is_legacy;
	} rows[] = {
		{&charged_memory_family, take_charged_memory, false},
		{&charged_cores_family, take_charged_cores, false},
		{&old_charged_memory_family, take_old_charged_memory, true},
		{&old_charged_cores_family, take_old_charged_cores, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].is_legacy && !writer->extender->settings->has_legacy_metrics)
			continue;
		exposition_write_head(writer->out, rows[i].family);
		books_each_charge(books, rows[i].take, writer);
	}
}

/* Those that the device plugin has made. */
static void take_instance(
	void *context, const char *node, size_t index, const struct books_instance *instance)
{
	if (!instance->given)
		return;
	EXPOSITION_WRITE(((const struct writer *)context)->out, instance_family.name, 1, {ZONE},
		{"node", node}, {"device_uuid", instance->uuid},
		{"device_index", EXPOSITION_NUMBER(index)}, {"mig_uuid", instance->given},
		{"profile", instance->profile ? instance->profile : ""},
		{"gpu_instance_id", EXPOSITION_NUMBER(instance->instance)},
		{"compute_instance_id", EXPOSITION_NUMBER(instance->compute)},
		{"placement_start", EXPOSITION_NUMBER(instance->place.start)},
		{"placement_size", EXPOSITION_NUMBER(instance->place.size)});
}

static void take_old_instance(
	void *context, const char *node, size_t index, const struct books_instance *instance)
{
	char name[128];

	if (!instance->given)
		return;
	snprintf(name, sizeof(name), "%s-%u", instance->profile ? instance->profile : "",
		instance->instance);
	EXPOSITION_WRITE(((const struct writer *)context)->out, old_instance_family.name, 1, {ZONE},
		{"nodeid", node}, {"deviceuuid", instance->uuid},
		{"deviceidx", EXPOSITION_NUMBER(index)}, {"migname", name});
}

static void write_instances(struct writer *writer, struct books *books)
{
	exposition_write_head(writer->out, &instance_family);
	books_each_instance(books, take_instance, writer);
	if (!writer->extender->settings->has_legacy_metrics)
		return;
	exposition_write_head(writer->out, &old_instance_family);
	books_each_instance(books, take_old_instance, writer);
}

static void write_quota(FILE *out, bool is_legacy, const char *namespace, const char *resource,
	int64_t limit, int64_t used)
{
	if (limit == INT64_MAX)
		return;
	EXPOSITION_WRITE(out, (is_legacy ? &old_quota_used_family : &quota_used_family)->name,
		(double)used, {ZONE}, {is_legacy ? "quotanamespace" : "namespace", namespace},
		{is_legacy ? "quotaName" : "quota_name", resource},
		{"limit", EXPOSITION_NUMBER(limit)});
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
	if (limit != INT64_MAX)
		EXPOSITION_WRITE(out, quota_limit_family.name, (double)limit, {ZONE},
			{"namespace", namespace}, {"quota_name", resource});
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
	exposition_write_head(writer->out, &quota_used_family);
	books_each_quota(books, take_quota, writer);
	exposition_write_head(writer->out, &quota_limit_family);
	books_each_quota(books, take_limit, writer);
	if (!writer->extender->settings->has_legacy_metrics)
		return;
	exposition_write_head(writer->out, &old_quota_used_family);
	books_each_quota(books, take_quota_legacy, writer);
}

static void write_histogram(FILE *out, const char *verb, const struct measure_histogram *took)
{
	const char *name = duration_family.name;
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

static void write_number(FILE *out, const struct exposition_family *family, uint64_t value)
{
	exposition_write_head(out, family);
	fprintf(out, "%s %llu\n", family->name, (unsigned long long)value);
}

static void write_work(FILE *out, const struct extender *extender)
{
	static const char *const verbs[MEASURE_VERBS] = {"filter", "bind", "webhook", "preempt"};
	const struct measure *measure = extender->measure;

	exposition_write_head(out, &duration_family);
	for (unsigned i = 0; i < MEASURE_VERBS; i++)
		write_histogram(out, verbs[i], &measure->took[i]);
	exposition_write_head(out, &failures_family);
	for (unsigned i = 0; i < MEASURE_VERBS; i++)
		fprintf(out, "%s{verb=\"%s\"} %llu\n", failures_family.name, verbs[i],
			(unsigned long long)measure->failed[i]);
	exposition_write_head(out, &rejections_family);
	for (unsigned i = 0; i <= FIT_REASONS; i++)
		fprintf(out, "%s{reason=\"%s\"} %llu\n", rejections_family.name,
			i < FIT_REASONS ? fit_reason_word((enum fit_reason)i) : "NodeUnregistered",
			(unsigned long long)measure->rejections[i]);
	write_number(out, &api_calls_family, kube_client_sent(extender->client));
	write_number(out, &turned_away_family, measure->turned_away);
	write_number(out, &events_lost_family, event_lost_count(extender->events));
	write_number(out, &events_left_out_family, event_left_out_count(extender->events));
}

static void write_state(FILE *out, const struct extender *extender)
{
	write_number(out, &binds_waiting_family, extender_bind_count(extender));
	write_number(out, &reservations_family, holds_count(cluster_holds(extender->cluster)));
	write_number(out, &nodes_family, cluster_node_count(extender->cluster));
	write_number(out, &is_leader_family, extender->leads);
	write_number(out, &is_known_family, cluster_is_known(extender->cluster));
	exposition_write_head(out, &build_family);
	EXPOSITION_WRITE(out, build_family.name, 1, {"version", VGPU_VERSION});
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
