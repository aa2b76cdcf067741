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
#include "node/exposition.h"
#include "node/slice_metrics.h"

#define ZONE	   "zone", "vGPU"
#define TYPE_BYTES (sizeof("NVIDIA-") + UUID_TEXT_BYTES)
#define UUID_BYTES 41

struct figures {
	bool is_known;
	double memory_bytes, busy_percent, controller_percent;
};

static struct figures ask(const struct metrics_source *s, const struct inventory_device *device)
{
	struct figures figures = {.is_known = false};
	nvmlUtilization_t busy;
	nvmlMemory_t memory;
	nvmlDevice_t handle;

	if (!s->nvml || nvml_find_device(s->nvml, device->uuid, &handle) ||
		nvml_read_memory(s->nvml, handle, &memory))
		return figures;
	figures.is_known = true;
	figures.memory_bytes = (double)memory.used;
	if (s->nvml->nvmlDeviceGetUtilizationRates(handle, &busy) == NVML_SUCCESS) {
		figures.busy_percent = busy.gpu;
		figures.controller_percent = busy.memory;
	}
	return figures;
}

static const struct {
	const char *name, *legacy, *help;
	size_t offset;
	bool has_node;
} host_families[] = {
	{"hami_host_gpu_memory_used_bytes", "HostGPUMemoryUsage",
		"GPU device memory usage in bytes", offsetof(struct figures, memory_bytes), true},
	{"hami_host_gpu_utilization_ratio", "HostCoreUtilization",
		"GPU core utilization ratio (0-100)", offsetof(struct figures, busy_percent), true},
	{"hami_host_gpu_memory_controller_utilization_ratio", NULL,
		"GPU memory controller utilization ratio (0-100)",
		offsetof(struct figures, controller_percent), false},
};

static void write_host(FILE *out, const struct metrics_source *s, const struct figures *figures,
	size_t family, bool is_legacy)
{
	const char *name = is_legacy ? host_families[family].legacy : host_families[family].name;

	exposition_write_head(out, name, host_families[family].help, "gauge");
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

		if (!figures[i].is_known)
			continue;
		snprintf(index, sizeof(index), "%u", device->index);
		snprintf(type, sizeof(type), "NVIDIA-%s", device->name);
		memcpy(&value, (const char *)&figures[i] + host_families[family].offset,
			sizeof(value));
		exposition_write(out, name, labels, ARRAY_SIZE(labels), value);
	}
}

static void write_hosts(FILE *out, const struct metrics_source *s)
{
	struct figures figures[INVENTORY_MAX];

	for (unsigned i = 0; i < s->devices->count; i++)
		figures[i] = ask(s, &s->devices->device[i]);
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
	const char *name, *legacy, *help;
	value_fn *value;
} container_families[] = {
	{"hami_vgpu_memory_used_bytes", "vGPU_device_memory_usage_in_bytes",
		"vGPU device memory usage in bytes", used},
	{"hami_vgpu_memory_limit_bytes", "vGPU_device_memory_limit_in_bytes",
		"vGPU device memory limit in bytes", limit},
	{"hami_container_device_memory_bytes", NULL, "Container device memory usage in bytes",
		used},
	{"hami_container_device_utilization_ratio", "Device_utilization_desc_of_container",
		"Container device SM utilization ratio", busy},
	{"hami_container_last_kernel_elapsed_seconds", "Device_last_kernel_of_container",
		"Seconds since last kernel execution in container", last_launch},
	{"hami_vgpu_memory_context_bytes", NULL, "Container device memory context size in bytes",
		context},
	{"hami_vgpu_memory_module_bytes", NULL, "Container device memory module size in bytes",
		module},
	{"hami_vgpu_memory_buffer_bytes", NULL, "Container device memory buffer size in bytes",
		buffer},
};

/* Whose container it is. Where there is a cluster and it does not know the pod, the container is on its way out. */
static bool find_pod(
	const struct metrics_source *s, const struct scan_container *c, struct pod_name *ret_pod)
{
	*ret_pod = (struct pod_name){"", c->uid};
	return !s->pods || pod_names_find(s->pods, c->uid, ret_pod);
}

static void write_container(FILE *out, const struct metrics_source *s,
	const struct container_family *family, const struct scan_container *c, bool is_legacy)
{
	struct pod_name pod;

	if (!find_pod(s, c, &pod))
		return;
	for (unsigned i = 0; i < c->figures.device_count; i++) {
		const struct hami_device *device = &c->figures.devices[i];
		char index[16], uuid[UUID_BYTES];
		struct exposition_label labels[] = {{ZONE},
			{is_legacy ? "podnamespace" : "namespace", pod.namespace},
			{is_legacy ? "podname" : "pod", pod.name},
			{is_legacy ? "ctrname" : "container", c->name},
			{is_legacy ? "vdeviceid" : "vdevice_index", index},
			{is_legacy ? "deviceuuid" : "device_uuid", uuid}};
		double value;

		snprintf(index, sizeof(index), "%u", i);
		snprintf(uuid, sizeof(uuid), "%.40s", device->uuid);
		if (family->value(s, &c->figures, device, &value))
			exposition_write(out, is_legacy ? family->legacy : family->name, labels,
				ARRAY_SIZE(labels), value);
	}
}

static void write_containers(FILE *out, const struct metrics_source *s,
	const struct container_family *family, bool is_legacy)
{
	exposition_write_head(
		out, is_legacy ? family->legacy : family->name, family->help, "gauge");
	for (size_t i = 0; i < s->scan->count; i++)
		write_container(out, s, family, &s->scan->list[i], is_legacy);
}

static void write_slices(FILE *out, const struct metrics_source *s)
{
	_cleanup_free_ struct view *views = calloc(s->scan->count + 1, sizeof(*views));
	_cleanup_free_ struct slice_owner *owners = calloc(s->scan->count + 1, sizeof(*owners));
	size_t count = 0;

	if (!views || !owners)
		return;
	for (size_t i = 0; i < s->scan->count; i++) {
		const struct scan_container *c = &s->scan->list[i];
		struct pod_name pod;

		if (!c->is_ours || !find_pod(s, c, &pod))
			continue;
		views[count] = c->view; /* for as long as the scan is there */
		owners[count++] = (struct slice_owner){pod.namespace, pod.name, c->name};
	}
	slice_metrics_write(out, views, owners, count);
}

void metrics_write(FILE *out, const struct metrics_source *source)
{
	struct exposition_label version[] = {{"version", VGPU_VERSION}};

	write_hosts(out, source);
	for (size_t i = 0; i < ARRAY_SIZE(container_families); i++) {
		write_containers(out, source, &container_families[i], false);
		if (source->has_legacy && container_families[i].legacy)
			write_containers(out, source, &container_families[i], true);
	}
	write_slices(out, source);
	exposition_write_head(out, "hami_build_info", "The program's version", "gauge");
	exposition_write(out, "hami_build_info", version, 1, 1);
}
