/* SPDX-License-Identifier: Apache-2.0 */
/* The device plugin as a whole. */
#include "plugin/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "gpu/topology.h"
#include "node/nvml_library.h"
#include "plugin/agent.h"
#include "plugin/collect.h"
#include "plugin/devices/health.h"
#include "plugin/devices/score.h"
#include "plugin/host/cdi.h"
#include "plugin/host/ends.h"
#include "plugin/host/library.h"
#include "plugin/kubelet.h"
#include "plugin/mig/parts.h"
#include "plugin/mps.h"
#include "plugin/register.h"
#include "plugin/service.h"
#include "plugin/slices.h"

#define LOG_TOPIC LOG_KUBELET

#define MIB	  20

struct plugin {
	const struct config *config;
	struct loop *loop;
	struct rpc *rpc;
	struct inventory devices; /* that are shared */
	unsigned read_count;	  /* devices that could be read, */
	unsigned lost_count;	  /* and those that NVML counts beside them */
	struct slices slices;
	struct giver giver;
	struct service service;
	struct agent *agent; /* NULL: it knows no cluster */
	struct kubelet *kubelet;
	struct health *health;
	struct parts *parts;
	struct cdi_request cdi;
	uint64_t failed; /* devices, by their health */
	struct mps *mps; /* NULL: no containers are made ready */
	struct collect collect;
	struct ends ends;
	struct loop_timer ends_look;
	int numa[INVENTORY_MAX]; /* of each device; below 0: unknown */
	char *scores;		 /* NULL: they are not told */
	char hook[SHARE_PATH_BYTES], shares[SHARE_PATH_BYTES], lock[SHARE_PATH_BYTES];
};

static struct register_device describe_one(const struct plugin *plugin, unsigned i)
{
	const struct config *config = plugin->config;
	const struct inventory_device *device = &plugin->devices.device[i];

	return (struct register_device){
		.uuid = device->uuid,
		.name = device->name,
		.index = device->index,
		.slices = (unsigned)config->split_count,
		.memory_mib = config_memory_mib(config, device),
		.cores_percent = (unsigned)(100 * config->cores_scaling),
		.numa = plugin->numa[i],
		.mode = config_mode_names[config_mode_of(config, device)],
		.is_healthy = !(plugin->slices.unhealthy >> i & 1),
	};
}

/* What can be had of it are parts, and these are what they are. */
static void describe_parts(const struct plugin *plugin, unsigned i, struct register_device *to)
{
	const struct inventory_device *device = &plugin->devices.device[i];

	to->profiles = parts_profiles(plugin->parts, i, &to->profile_count, &to->slices);
	if (!to->profiles)
		return;
	to->cores_percent = 100;
	if (device->total_bytes)
		to->memory_mib = device->total_bytes >> MIB;
	if (!to->profile_count)
		to->memory_mib = 0;
}

/* A device whose memory nobody knows cannot be shared. */
static int describe(const struct plugin *plugin, char **ret_text)
{
	struct register_device list[INVENTORY_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < plugin->devices.count; i++) {
		list[count] = describe_one(plugin, i);
		describe_parts(plugin, i, &list[count]);
		count += list[count].memory_mib != 0;
	}
	return register_format(list, count, ret_text);
}

/* The kubelet and the scheduler are told of the devices as they are now. */
static int tell(struct plugin *plugin)
{
	uint8_t *list;
	char *text;
	size_t bytes;
	int result;

	plugin->slices.unhealthy =
		plugin->failed | (plugin->parts ? parts_unready(plugin->parts) : 0);
	result = slices_pack(&plugin->slices, &list, &bytes);
	if (result)
		return result;
	service_set_list(&plugin->service, list, bytes);
	plugin->giver.node.unhealthy = plugin->slices.unhealthy;
	if (!plugin->agent)
		return 0;
	result = describe(plugin, &text);
	if (!result)
		agent_register(plugin->agent, text, plugin->scores);
	return result;
}

static void health_has_changed(void *context, uint64_t unhealthy)
{
	struct plugin *plugin = context;

	if (plugin->parts && plugin->failed & ~unhealthy)
		parts_look_at_devices(plugin->parts);
	plugin->failed = unhealthy;
	if (tell(plugin))
		log_error("no memory to tell of devices");
}

/* Those that are shared, and where they are. */
static int take_devices(
	struct plugin *plugin, const struct nvml_library *library, const struct inventory *all)
{
	const struct config *config = plugin->config;

	for (unsigned i = 0; i < all->count; i++) {
		struct device_place place;
		unsigned at = plugin->devices.count;

		if (config_is_filtered(config, &all->device[i]))
			continue;
		topology_read_place(&library->driver, &library->node, &all->device[i], &place);
		plugin->devices.device[at] = all->device[i];
		plugin->numa[at] = place.numa_node;
		plugin->devices.count++;
	}
	topology_read(&library->driver, &library->node, &plugin->devices, &plugin->giver.topology);
	return config->has_pair_scores
		       ? score_format(&plugin->devices, &plugin->giver.topology, &plugin->scores)
		       : 0;
}

static void set_slices(struct plugin *plugin)
{
	const struct config *config = plugin->config;

	plugin->slices.split_count = (unsigned)config->split_count;
	for (unsigned i = 0; i < plugin->devices.count; i++)
		plugin->slices.numa[i] = config->has_numa_topology ? plugin->numa[i] : -1;
}

static void count_lost(struct plugin *plugin, const struct nvml_library *library, unsigned read)
{
	unsigned count;

	plugin->read_count = read;
	if (library->driver.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS || count <= read)
		return;
	plugin->lost_count = count - read;
	log_warn("devices are lost; they are looked for again", U64("devices", count - read));
}

bool plugin_lacks_devices(const struct plugin *plugin)
{
	return plugin->lost_count > 0;
}

bool plugin_finds_more_devices(const struct plugin *plugin)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};
	_cleanup_free_ struct inventory *all = calloc(1, sizeof(*all));
	struct err err = ERR_NULL;

	return all && !nvml_library_open(NULL, &library, &err) &&
	       !inventory_read(&library.driver, all, &err) && all->count > plugin->read_count;
}

static int read_devices(struct plugin *plugin, struct err *err)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};
	_cleanup_free_ struct inventory *all = calloc(1, sizeof(*all));
	int result =
		all ? nvml_library_open(NULL, &library, err) : err_set(err, ENOMEM, "no memory");

	if (!result)
		result = inventory_read(&library.driver, all, err);
	if (!result)
		count_lost(plugin, &library, all->count);
	if (!result && take_devices(plugin, &library, all))
		result = err_set(err, ENOMEM, "no memory");
	plugin->slices.devices = &plugin->devices;
	set_slices(plugin);
	if (!result)
		log_info("devices are read", U64("devices", plugin->devices.count),
			U64("slices", plugin->devices.count * plugin->slices.split_count));
	return result ? PLUGIN_E_DEVICES : 0;
}

static int watch_health(struct plugin *plugin, struct err *err)
{
	const struct health_request request = {
		.devices = &plugin->devices,
		.ignores = plugin->config->health_ignores,
		.heeds = plugin->config->health_heeds,
		.changed = health_has_changed,
		.context = plugin,
	};
	int result = health_start(plugin->loop, &request, &plugin->health);

	return result ? err_set(err, -result, "health cannot be watched: %s", strerror(-result))
		      : 0;
}

static void set_cdi(struct plugin *plugin)
{
	const struct config *config = plugin->config;

	plugin->cdi = (struct cdi_request){
		.state = config->state_folder,
		.folder = CDI_FOLDER,
		.driver_root = config->driver_root,
		.driver_root_here = config->driver_root_here,
		.dev_root = config->dev_root,
		.hook = config->cdi_hook,
		.has_indexes = config->device_id == CONFIG_ID_INDEX,
		.extras = (config->has_gdrcopy ? CDI_GDRCOPY : 0) |
			  (config->has_gds ? CDI_GDS : 0) | (config->has_mofed ? CDI_MOFED : 0),
		.channels = config->imex_channels,
		.channel_count = config->imex_channel_count,
		.devices = &plugin->devices,
	};
}

static void set_giver(struct plugin *plugin)
{
	const struct config *config = plugin->config;

	snprintf(plugin->hook, sizeof(plugin->hook), "%s/vgpu", config->hook_path);
	snprintf(plugin->shares, sizeof(plugin->shares), "%s/shares", config->state_folder);
	/* any user of the host could be the first to make one in /tmp */
	snprintf(plugin->lock, sizeof(plugin->lock), "%s/vgpulock", config->state_folder);
	plugin->giver = (struct giver){
		.node = {.config = config,
			.inventory = &plugin->devices,
			.has_turns = *config->turns_folder},
		.settings = {.place = {.hook = plugin->hook,
				     .shares = plugin->shares,
				     .turns = config->turns_folder,
				     .lock = plugin->lock},
			.state = config->state_folder,
			.version = VGPU_VERSION},
	};
}

/* Before a container can start: what containers have that the kubelet does not ask for again. */
static int make_host_ready(struct plugin *plugin, struct err *err)
{
	const struct config *config = plugin->config;
	unsigned failed = 0;
	int result = 0;

	if (*config->library)
		result = library_install(
			config->state_folder, plugin->hook, VGPU_VERSION, config->library, err);
	if (!result)
		result = prepare_restore(&plugin->giver.settings, &failed, err);
	if (!result)
		result = config->device_lists & CONFIG_LIST_ANY_CDI ? cdi_write(&plugin->cdi, err)
								    : 0;
	if (!result && failed)
		log_warn("containers could not be restored", U64("containers", failed));
	return result;
}

static void mark(void *context, const char *uuid)
{
	mps_mark(context, uuid);
}

/* Before the pods are known, each container that was made ready may run. */
static int mark_clients(void *context, struct mps *mps)
{
	struct plugin *plugin = context;
	struct err err = ERR_NULL;
	const char **uids = NULL;
	size_t count = 0;
	int result;

	if (!plugin->agent || agent_list_pods(plugin->agent, false, &uids, &count))
		uids = NULL;
	result = prepare_each_client(&plugin->giver.settings, uids, count, mark, mps, &err);
	if (result)
		log_warn("clients of MPS are not known", STR("why", err.text));
	free(uids);
	return result;
}

static int start_mps(struct plugin *plugin, struct err *err)
{
	const struct mps_request request = {
		.folder = plugin->config->mps_folder,
		.program = plugin->config->mps_control,
		.mark_clients = mark_clients,
		.context = plugin,
	};
	int result = mps_new(plugin->loop, &request, &plugin->mps, err);

	plugin->giver.mps = plugin->mps;
	return result;
}

static int join_kubelet(struct plugin *plugin, struct err *err)
{
	const struct kubelet_request request = {plugin->config->kubelet_socket,
		plugin->config->resource_count, plugin->config->has_preferred_allocation};

	if (*request.socket_path)
		return kubelet_start(plugin->loop, plugin->rpc, &request, &plugin->service,
			&plugin->kubelet, err);
	return 0;
}

static void parts_have_changed(void *context)
{
	struct plugin *plugin = context;
	struct err err = ERR_NULL;

	if (tell(plugin))
		log_error("no memory to tell of devices");
	if (plugin->kubelet || !parts_are_restored(plugin->parts) || !join_kubelet(plugin, &err))
		return;
	log_error("the plugin ends", STR("why", err.text));
	loop_stop(plugin->loop);
}

static int start_parts(struct plugin *plugin, struct err *err)
{
	const struct config *config = plugin->config;
	const struct parts_request request = {
		.config = config,
		.devices = &plugin->devices,
		.cdi = config->device_lists & CONFIG_LIST_ANY_CDI ? &plugin->cdi : NULL,
		.capabilities = CAPABILITY_PATH,
		.changed = parts_have_changed,
		.context = plugin,
	};
	int result = parts_new(plugin->loop, &request, &plugin->parts, err);

	plugin->giver.parts = plugin->parts;
	return result;
}

static void pods_have_changed(void *context, const struct pods *pods)
{
	struct plugin *plugin = context;

	parts_look(plugin->parts, pods);
}

/* Those that each container gets. */
static int check_channels(const struct config *config, struct err *err)
{
	char path[64];

	for (unsigned i = 0; config->is_imex_required && i < config->imex_channel_count; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia-caps-imex-channels/channel%u",
			config->imex_channels[i]);
		if (access(path, F_OK))
			return err_set(err, errno, "%s, which --imex-required wants: %s", path,
				strerror(errno));
	}
	return 0;
}

static void look_for_ends(void *context)
{
	struct plugin *plugin = context;

	ends_look(&plugin->ends);
	loop_timer_set(plugin->loop, &plugin->ends_look, clock_now_ns() + ENDS_LOOK_NS);
}

static int join_cluster(struct plugin *plugin, struct err *err)
{
	const struct config *config = plugin->config;
	const struct agent_request request = {
		.config = config,
		.giver = &plugin->giver,
		.pods_changed = pods_have_changed,
		.context = plugin,
	};
	int result;

	if (!*config->node_name) {
		log_warn("no slices are handed out: NODE_NAME does not name this node");
		return 0;
	}
	result = make_host_ready(plugin, err);
	if (!result)
		result = start_parts(plugin, err);
	if (!result)
		result = start_mps(plugin, err);
	if (!result)
		result = agent_start(plugin->loop, plugin->rpc, &request, &plugin->agent, err);
	if (result)
		return result;
	plugin->service.allocate = agent_allocate(plugin->agent);
	collect_start(&plugin->collect, plugin->agent, &plugin->giver.settings);
	look_for_ends(plugin);
	return 0;
}

int plugin_start(
	struct loop *loop, const struct config *config, struct plugin **ret_plugin, struct err *err)
{
	struct plugin *plugin = calloc(1, sizeof(*plugin));
	int result;

	if (!plugin)
		return err_set(err, ENOMEM, "no memory");
	plugin->config = config;
	plugin->loop = loop;
	plugin->ends = (struct ends){.settings = &plugin->giver.settings};
	plugin->ends_look = (struct loop_timer){.due = look_for_ends, .context = plugin};
	set_cdi(plugin);
	set_giver(plugin);
	result = check_channels(config, err);
	if (!result)
		result = read_devices(plugin, err);
	if (!result && rpc_new(loop, &plugin->rpc))
		result = err_set(err, ENOMEM, "gRPC does not start");
	if (!result)
		result = join_cluster(plugin, err);
	if (!result && tell(plugin))
		result = err_set(err, ENOMEM, "no memory");
	/* Before that the kubelet starts no container of a pod whose instances are not there. */
	if (!result && (!plugin->parts || parts_are_restored(plugin->parts)))
		result = join_kubelet(plugin, err);
	if (!result)
		result = watch_health(plugin, err);
	if (result)
		plugin_stop(plugin);
	else
		*ret_plugin = plugin;
	return result;
}

int plugin_refresh(struct plugin *plugin)
{
	set_slices(plugin);
	return tell(plugin);
}

void plugin_stop(struct plugin *plugin)
{
	if (!plugin)
		return;
	health_stop(plugin->health);
	collect_stop(&plugin->collect);
	loop_timer_clear(plugin->loop, &plugin->ends_look);
	ends_deinit(&plugin->ends);
	kubelet_stop(plugin->kubelet);
	mps_free(plugin->mps);
	agent_stop(plugin->agent);
	parts_free(plugin->parts);
	if (plugin->rpc)
		rpc_free(plugin->rpc);
	free(plugin->scores);
	free(plugin->service.list);
	free(plugin);
}
