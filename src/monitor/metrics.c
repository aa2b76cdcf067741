/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the monitor tells.
 *
 * The families that begin with "hami_" have the names, labels and units by which dashboards of HAMi know them: utilization is percent
 * there, though it is called a ratio, and a UUID is its first 40 characters.
 */
#include "monitor/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exposition.h"
#include "node/slice_metrics.h"

#define ZONE	   "zone", "vGPU"
#define TYPE_BYTES (sizeof("NVIDIA-") + UUID_TEXT_BYTES)
#define UUID_BYTES 41

/* The same as numbers of metrics. */
struct figures {
	bool is_known, has_busy;
	double memory_bytes, busy_percent, controller_percent;
};

struct metrics_device metrics_read_device(const struct metrics_source *s, const char *uuid)
{
	struct metrics_device figures = {.is_known = false};
	nvmlUtilization_t busy;
	nvmlMemory_t memory;
	nvmlDevice_t handle;

	if (!s->nvml || nvml_find_device(s->nvml, uuid, &handle) ||
		nvml_read_memory(s->nvml, handle, &memory))
		return figures;
	figures.is_known = true;
	figures.total_bytes = memory.total;
	figures.memory_bytes = memory.used;
	if (s->nvml->nvmlDeviceGetUtilizationRates(handle, &busy) == NVML_SUCCESS) {
		figures.has_busy = true;
		figures.busy_percent = busy.gpu;
		figures.controller_percent = busy.memory;
	}
	return figures;
}

#define METRIC EXPOSITION_FAMILY
#define LEGACY EXPOSITION_FAMILY
#define LABELS EXPOSITION_LABELS
#include "monitor/metrics.def"

static const struct {
	const struct exposition_family *family, *legacy;
	size_t offset;
	bool has_node, is_of_use;
} host_families[] = {
	{&host_memory_family, &old_host_memory_family, offsetof(struct figures, memory_bytes), true,
		false},
	{&host_busy_family, &old_host_busy_family, offsetof(struct figures, busy_percent), true,
		true},
	{&host_controller_family, NULL, offsetof(struct figures, controller_percent), false, true},
};

static void write_host(FILE *out, const struct metrics_source *s, const struct figures *figures,
	size_t family, bool is_legacy)
{
	const struct exposition_family *told =
		is_legacy ? host_families[family].legacy : host_families[family].family;

	exposition_write_head(out, told);
	for (unsigned i = 0; i < s->devices->count; i++) {
		const struct inventory_device *device = &s->devices->device[i];
		char index[16], type[TYPE_BYTES];
		struct exposition_label labels[] = {{ZONE},
			{is_legacy ? "nodeid" : "node",
				host_families[family].has_node ? s->node : ""},
			{is_legacy ? "deviceidx" : "device_index", index},
			{is_legacy ? "deviceuuid" : "device_uuid", device->uuid},
			{is_legacy ? "devicetype" : "device_type", type}};
		double value;

		/* of a card that is cut the driver tells no use */
		if (!figures[i].is_known ||
			(host_families[family].is_of_use && !figures[i].has_busy))
			continue;
		snprintf(index, sizeof(index), "%u", device->index);
		snprintf(type, sizeof(type), "NVIDIA-%s", device->name);
		memcpy(&value, (const char *)&figures[i] + host_families[family].offset,
			sizeof(value));
		exposition_write(out, told->name, labels, ARRAY_SIZE(labels), value);
	}
}

static void write_hosts(FILE *out, const struct metrics_source *s)
{
	struct figures figures[INVENTORY_MAX];

	for (unsigned i = 0; i < s->devices->count; i++) {
		struct metrics_device device = metrics_read_device(s, s->devices->device[i].uuid);

		figures[i] = (struct figures){device.is_known, device.has_busy,
			(double)device.memory_bytes, device.busy_percent,
			device.controller_percent};
	}
	for (size_t i = 0; i < ARRAY_SIZE(host_families); i++) {
		write_host(out, s, figures, i, false);
		if (s->has_legacy && host_families[i].legacy)
			write_host(out, s, figures, i, true);
	}
}

/* A container's figure of one of its devices; false: there is none. */
typedef bool value_fn(const struct metrics_source *s, const struct hami_figures *container,
	const struct hami_device *device, double *ret_value);

#define VALUE(function, is_there, value)                                                           \
	static bool function(const struct metrics_source *s, const struct hami_figures *container, \
		const struct hami_device *device, double *ret_value)                               \
	{                                                                                          \
		(void)s, (void)container, (void)device;                                            \
		*ret_value = (double)(value);                                                      \
		return (is_there);                                                                 \
	}

VALUE(used, true, device->used_bytes)
VALUE(limit, true, device->limit_bytes)
VALUE(busy, true, device->busy_percent)
VALUE(context, true, device->context_bytes)
VALUE(module, true, device->module_bytes)
VALUE(buffer, true, device->buffer_bytes)
VALUE(last_launch, container->last_launch_s != 0,
	s->now_s > container->last_launch_s ? s->now_s - container->last_launch_s : 0)

static const struct container_family {
	const struct exposition_family *family, *legacy;
	value_fn *value;
} container_families[] = {
	{&used_family, &old_used_family, used},
	{&limit_family, &old_limit_family, limit},
	{&container_memory_family, NULL, used},
	{&busy_family, &old_busy_family, busy},
	{&last_launch_family, &old_last_launch_family, last_launch},
	{&context_family, NULL, context},
	{&module_family, NULL, module},
	{&buffer_family, NULL, buffer},
};

bool metrics_find_pod(const struct metrics_source *s, const struct scan_container *c,
	struct slice_owner *ret_owner)
{
	const struct pod_name *pod = pod_names_find(s->pods, c->uid);

	if (!*c->uid) {
		*ret_owner = (struct slice_owner){"", c->view->name, ""};
		return true;
	}
	*ret_owner = pod ? (struct slice_owner){pod->namespace, pod->name, c->name}
			 : (struct slice_owner){"", c->uid, c->name};
	return !s->pods || pod;
}

static void write_container(FILE *out, const struct metrics_source *s,
	const struct container_family *family, const struct scan_container *c, bool is_legacy)
{
	struct slice_owner owner;

	if (!metrics_find_pod(s, c, &owner))
		return;
	for (unsigned i = 0; i < c->figures.device_count; i++) {
		const struct hami_device *device = &c->figures.devices[i];
		char index[16], uuid[UUID_BYTES];
		struct exposition_label labels[] = {{ZONE},
			{is_legacy ? "podnamespace" : "namespace", owner.namespace},
			{is_legacy ? "podname" : "pod", owner.pod},
			{is_legacy ? "ctrname" : "container", owner.container},
			{is_legacy ? "vdeviceid" : "vdevice_index", index},
			{is_legacy ? "deviceuuid" : "device_uuid", uuid}};
		double value;

		if (!*device->uuid)
			continue;
		snprintf(index, sizeof(index), "%u", i);
		snprintf(uuid, sizeof(uuid), "%.40s", device->uuid);
		if (family->value(s, &c->figures, device, &value))
			exposition_write(out, (is_legacy ? family->legacy : family->family)->name,
				labels, ARRAY_SIZE(labels), value);
	}
}

static void write_containers(FILE *out, const struct metrics_source *s,
	const struct container_family *family, bool is_legacy)
{
	exposition_write_head(out, is_legacy ? family->legacy : family->family);
	for (size_t i = 0; i < s->scan->count; i++)
		write_container(out, s, family, &s->scan->list[i], is_legacy);
}

/* The old name of a container's memory, which has its parts as labels. */
static void write_memory(FILE *out, const struct metrics_source *s)
{
	struct slice_owner owner;

	exposition_write_head(out, &old_memory_family);
	for (size_t i = 0; i < s->scan->count; i++) {
		const struct scan_container *c = &s->scan->list[i];

		for (unsigned k = 0; k < c->figures.device_count && metrics_find_pod(s, c, &owner);
			k++) {
			const struct hami_device *d = &c->figures.devices[k];
			char uuid[UUID_BYTES];

			if (!*d->uuid)
				continue;
			snprintf(uuid, sizeof(uuid), "%.40s", d->uuid);
			EXPOSITION_WRITE(out, old_memory_family.name, (double)d->used_bytes, {ZONE},
				{"podnamespace", owner.namespace}, {"podname", owner.pod},
				{"ctrname", owner.container}, {"vdeviceid", EXPOSITION_NUMBER(k)},
				{"deviceuuid", uuid},
				{"context", EXPOSITION_NUMBER(d->context_bytes)},
				{"module", EXPOSITION_NUMBER(d->module_bytes)},
				{"data", EXPOSITION_NUMBER(d->buffer_bytes)},
				{"offset", EXPOSITION_NUMBER(d->offset_bytes)});
		}
	}
}

/* Of devices that are cut, what the device plugin has given. Its word is an annotation of the pod. */
static void write_instance(
	FILE *out, const struct pod_name *pod, const struct instance *instance, bool is_legacy)
{
	char uuid[UUID_BYTES];

	if (!instance->is_given || instance->container >= pod->container_count)
		return;
	snprintf(uuid, sizeof(uuid), "%.40s", instance->gpu);
	EXPOSITION_WRITE(out, (is_legacy ? &old_instance_family : &instance_family)->name, 1,
		{ZONE}, {is_legacy ? "podnamespace" : "namespace", pod->namespace},
		{is_legacy ? "podname" : "pod", pod->name},
		{is_legacy ? "ctrname" : "container", pod->containers[instance->container].name},
		{is_legacy ? "vdeviceid" : "vdevice_index", EXPOSITION_NUMBER(instance->device)},
		{is_legacy ? "deviceuuid" : "device_uuid", uuid},
		{is_legacy ? "" : "mig_uuid", is_legacy ? "" : instance->uuid},
		{is_legacy ? "" : "profile", is_legacy ? "" : instance->profile},
		{is_legacy ? "instanceid" : "gpu_instance_id",
			EXPOSITION_NUMBER(instance->instance)},
		{is_legacy ? "" : "compute_instance_id",
			is_legacy ? "" : EXPOSITION_NUMBER(instance->compute)});
}

/* The same place twice would be the same sample twice. */
static bool is_repeated(const struct instances *instances, size_t at)
{
	const struct instance *it = &instances->at[at];

	for (size_t i = 0; i < at; i++)
		if (instances->at[i].container == it->container &&
			instances->at[i].device == it->device)
			return true;
	return false;
}

static void write_instances(FILE *out, const struct metrics_source *s, bool is_legacy)
{
	exposition_write_head(out, is_legacy ? &old_instance_family : &instance_family);
	for (const struct pod_name *pod = pod_names_first(s->pods); pod; pod = pod->next)
		for (size_t i = 0; i < pod->instances.count; i++)
			if (!is_repeated(&pod->instances, i))
				write_instance(out, pod, &pod->instances.at[i], is_legacy);
}

/* Those of `vgpu run` come last, and are nobody's container. */
static void write_slices(FILE *out, const struct metrics_source *s)
{
	size_t most = s->scan->count + s->local->count + 1, count = 0;
	_cleanup_free_ const struct view **views = calloc(most, sizeof(*views));
	_cleanup_free_ struct slice_owner *owners = calloc(most, sizeof(*owners));

	if (!views || !owners)
		return;
	for (size_t i = 0; i < s->scan->count; i++) {
		const struct scan_container *c = &s->scan->list[i];

		if (!c->view || !metrics_find_pod(s, c, &owners[count]))
			continue;
		views[count++] = c->view;
	}
	for (size_t i = 0; i < s->local->count; i++) {
		owners[count] = (struct slice_owner){"", "", ""};
		views[count++] = s->local->list[i].view;
	}
	slice_metrics_write(out, views, owners, count);
}

void metrics_write(FILE *out, const struct metrics_source *source)
{
	write_hosts(out, source);
	for (size_t i = 0; i < ARRAY_SIZE(container_families); i++) {
		write_containers(out, source, &container_families[i], false);
		if (source->has_legacy && container_families[i].legacy)
			write_containers(out, source, &container_families[i], true);
	}
	write_instances(out, source, false);
	if (source->has_legacy) {
		write_memory(out, source);
		write_instances(out, source, true);
	}
	write_slices(out, source);
	audit_write(source->audit, source->pods, out);
	books_write(&source->books, out);
	exposition_write_head(out, &build_family);
	EXPOSITION_WRITE(out, build_family.name, 1, {"version", VGPU_VERSION});
}
