/* SPDX-License-Identifier: Apache-2.0 */
/* What one container is granted. */
#include "plugin/grant/grant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mark.h"
#include "base/parse.h"

#define MIB_BYTES   UINT64_C(0x100000)
#define UUID_DASHES 5 /* of "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76" */
#define PATH_ROOM   (SHARE_PATH_BYTES - 64)

/* Behind two colons, or behind the dash of an ID with one dash more than a UUID has, there is the slice's number. */
size_t grant_id_device(const char *id)
{
	const char *colons = strstr(id, "::"), *dash = NULL, *digit;
	unsigned dashes = 0;

	if (colons)
		return (size_t)(colons - id);
	for (const char *at = id; *at; at++)
		if (*at == '-') {
			dash = at;
			dashes++;
		}
	if (dashes != UUID_DASHES + 1)
		return strlen(id);
	for (digit = dash + 1; *digit >= '0' && *digit <= '9'; digit++)
		;
	return *digit || !dash[1] ? strlen(id) : (size_t)(dash - id);
}

void grant_draw_unique(char ret_unique[GRANT_UNIQUE_BYTES])
{
	uint64_t a = mark_random(), b = mark_random();

	snprintf(ret_unique, GRANT_UNIQUE_BYTES, "%08x-%04x-4%03x-%04x-%012llx",
		(unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
		(unsigned)(b >> 48 & 0x3fff) | 0x8000,
		(unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

/* What is the same for a whole device and for a part of one. */
static int check_any(const struct grant_node *node, const struct assignment_device *wanted,
	const struct inventory_device **ret_device, struct err *err)
{
	const struct inventory_device *device = inventory_lookup(node->inventory, wanted->uuid);

	if (strcmp(wanted->vendor, ASSIGNMENT_VENDOR) != 0)
		return err_set(err, EINVAL, "the assigned device %s is of '%s', not of %s",
			wanted->uuid, wanted->vendor, ASSIGNMENT_VENDOR);
	if (!device)
		return err_set(err, EINVAL, "this node has no device %s", wanted->uuid);
	if (config_is_filtered(node->config, device))
		return err_set(err, EINVAL, "device %s is not shared on this node (filterdevices)",
			wanted->uuid);
	if (node->unhealthy >> (device - node->inventory->device) & 1)
		return err_set(err, EINVAL, "device %s is not healthy", wanted->uuid);
	*ret_device = device;
	return 0;
}

static bool is_cut(const struct grant_node *node, const struct inventory_device *device)
{
	return config_mode_of(node->config, device) == CONFIG_MIG;
}

static int check_device(const struct grant_node *node, const struct assignment_device *wanted,
	const struct inventory_device **ret_device, struct err *err)
{
	const struct inventory_device *device;
	int result = check_any(node, wanted, &device, err);

	if (result)
		return result;
	if (device->is_mig || wanted->part[0] || is_cut(node, device))
		return err_set(err, EINVAL, "device %s can be had in MIG parts only", wanted->uuid);
	if (wanted->memory_mib == 0)
		return err_set(err, EINVAL,
			"no memory of device %s is assigned, which would be no limit",
			wanted->uuid);
	if (wanted->cores_percent > 100)
		return err_set(err, EINVAL, "%d percent of device %s are more than all of it",
			wanted->cores_percent, wanted->uuid);
	*ret_device = device;
	return 0;
}

/* A device that is assigned twice is one device with both parts. */
static int add_device(const struct assignment_device *wanted, const struct inventory_device *device,
	struct grant *g)
{
	unsigned at = 0;

	while (at < g->device_count && g->devices[at].device < device)
		at++;
	if (at == g->device_count || g->devices[at].device != device) {
		if (g->device_count == SHARE_DEVICES)
			return -E2BIG;
		memmove(&g->devices[at + 1], &g->devices[at],
			(g->device_count - at) * sizeof(g->devices[0]));
		g->devices[at] = (struct grant_device){.device = device,
			.memory_mib = (uint64_t)wanted->memory_mib,
			.cores_percent = (unsigned)wanted->cores_percent};
		g->device_count++;
		return 0;
	}
	g->devices[at].memory_mib += (uint64_t)wanted->memory_mib;
	/* one part without a limit leaves the whole without */
	g->devices[at].cores_percent =
		g->devices[at].cores_percent && wanted->cores_percent
			? g->devices[at].cores_percent + (unsigned)wanted->cores_percent
			: 0;
	if (g->devices[at].cores_percent > 100)
		g->devices[at].cores_percent = 100;
	return 0;
}

/* As the scheduler reckons it: an amount, else a part of what is registered, else the default. */
static uint64_t asked_mib(const struct config *config, const struct grant_asked *asked,
	const struct inventory_device *device)
{
	uint64_t all = config_memory_mib(config, device);

	if (asked->memory_mib > 0)
		return (uint64_t)asked->memory_mib *
		       (uint64_t)(config->memory_factor > 1 ? config->memory_factor : 1);
	if (asked->memory_percent > 0)
		return asked->memory_percent < 100 ? all * (uint64_t)asked->memory_percent / 100
						   : all;
	return config->default_memory_mib ? (uint64_t)config->default_memory_mib : all;
}

/* Who may write a pod's annotations cannot take more than the pod was admitted and counted for. */
static int check_asked(const struct config *config, const struct grant_asked *asked,
	const struct assignment_device *wanted, const struct inventory_device *device,
	struct err *err)
{
	uint64_t memory_mib = asked_mib(config, asked, device);
	int64_t cores = asked->cores_percent >= 0 ? asked->cores_percent : config->default_cores;

	if ((uint64_t)wanted->memory_mib > memory_mib)
		return err_set(err, EINVAL,
			"%d MiB of device %s are assigned, and the container asks for %llu",
			wanted->memory_mib, wanted->uuid, (unsigned long long)memory_mib);
	if (cores > 0 && (wanted->cores_percent == 0 || wanted->cores_percent > cores))
		return err_set(err, EINVAL,
			"%d percent of device %s are assigned (0: no limit), and the container "
			"asks for %d",
			wanted->cores_percent, wanted->uuid, (int)cores);
	return 0;
}

static int add_devices(const struct grant_node *node, const struct grant_asked *asked,
	const struct assignment_slot *slot, struct grant *g, struct err *err)
{
	for (size_t i = 0; i < slot->count; i++) {
		const struct inventory_device *device = NULL;
		int result = check_device(node, &slot->devices[i], &device, err);

		if (!result && asked && !node->config->trusts_assignments)
			result = check_asked(node->config, asked, &slot->devices[i], device, err);
		if (result)
			return result;
		if (add_device(&slot->devices[i], device, g))
			return err_set(
				err, EINVAL, "a slice has no more than %d devices", SHARE_DEVICES);
	}
	return 0;
}

/* A process has one daemon, and a daemon has one device. */
static int choose_mps(const struct grant_node *node, struct grant *g, struct err *err)
{
	for (unsigned i = 0; i < g->device_count; i++)
		g->is_mps |= config_mode_of(node->config, g->devices[i].device) == CONFIG_MPS;
	return g->is_mps && g->device_count > 1
		       ? err_set(err, EINVAL,
				 "%u devices are assigned, and with MPS a container can have one",
				 g->device_count)
		       : 0;
}

/* By the UID and not by names, because the names of records are seen by all slices of a device. */
static int name_it(const struct grant_node *node, const struct grant_container *container,
	const char *unique, struct grant *g, struct err *err)
{
	const char *hook = node->config->hook_path;
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	int length;

	for (const char *c = container->name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	length = snprintf(g->slice, sizeof(g->slice), "%s.%016llx", container->pod_uid,
		(unsigned long long)hash);
	if (length < 0 || (size_t)length >= sizeof(g->slice) || !share_name_is_valid(g->slice))
		return err_set(err, EINVAL, "'%.60s' is no UID of a pod", container->pod_uid);
	if (!*container->name || !share_name_is_valid(container->name))
		return err_set(err, EINVAL, "'%.80s' is no name of a container", container->name);
	if (strlen(hook) >= PATH_ROOM || strpbrk(hook, " \t\r\n"))
		return err_set(
			err, EINVAL, "HOOK_PATH '%.60s' is too long, or has white space", hook);
	if (strlen(unique) >= sizeof(g->unique) || !share_name_is_valid(unique))
		return err_set(err, EINVAL, "'%.60s' cannot be a region's name", unique);
	strcpy(g->unique, unique);
	snprintf(g->folder, sizeof(g->folder), "%s_%s", container->pod_uid, container->name);
	snprintf(g->library, sizeof(g->library), "%s/vgpu/libvgpu.so", hook);
	snprintf(g->region, sizeof(g->region), "%s/vgpu/%s.cache", hook, unique);
	return 0;
}

static enum config_core_policy policy_of(const struct config *config)
{
	return config->is_core_limit_disabled ? CONFIG_CORES_DISABLE
					      : (enum config_core_policy)config->core_policy;
}

/*
 * What a pod's own environment says of the policy is not asked: with the policy of the configuration, "default"
 * lends what no other slice uses, which is unknown without turns, "force" does not, and "disable" has no limit.
 */
static struct share_compute compute_of(
	const struct grant_node *node, unsigned cores_percent, bool has_turns)
{
	enum config_core_policy policy = policy_of(node->config);
	struct share_compute compute = {.cores_permille = 0};

	if (!cores_percent || policy == CONFIG_CORES_DISABLE)
		return compute;
	compute.cores_permille = (uint16_t)(10 * cores_percent);
	compute.cap_permille = policy == CONFIG_CORES_FORCE || !has_turns ? compute.cores_permille
									  : SHARE_WHOLE_PERMILLE;
	return compute;
}

static void fill_share(
	const struct grant_node *node, const struct grant_container *container, struct grant *g)
{
	struct share *share = &g->share;
	bool has_turns = node->has_turns && !g->is_mps;

	strcpy(share->slice, g->slice);
	strcpy(share->region, g->region);
	if (has_turns)
		strcpy(share->turns, GRANT_TURNS_FOLDER);
	if (g->is_mps)
		strcpy(share->mps, GRANT_MPS_FOLDER);
	share->has_no_exports = !node->config->allows_exports;
	share->imports_any = node->config->allows_imports;
	share->priority = SHARE_DEFAULT_PRIORITY;
	if (container->priority >= 0)
		share->priority = container->priority < SHARE_MAX_PRIORITY
					  ? (uint8_t)container->priority
					  : SHARE_MAX_PRIORITY;
	share->device_count = g->device_count;
	for (unsigned i = 0; i < g->device_count; i++) {
		struct share_device *to = &share->devices[i];

		strcpy(to->uuid, g->devices[i].device->uuid);
		to->memory_bytes = g->devices[i].memory_mib * MIB_BYTES;
		to->compute = compute_of(node, g->devices[i].cores_percent, has_turns);
	}
}

int grant_check_resized(const struct grant_node *node, const struct grant_asked *asked,
	const struct assignment_device *wanted, struct err *err)
{
	const struct inventory_device *device;
	int result = check_device(node, wanted, &device, err);

	if (!result && !node->config->resizes_beyond_limits)
		result = check_asked(node->config, asked, wanted, device, err);
	if (!result && config_mode_of(node->config, device) == CONFIG_MPS)
		result = err_set(err, EINVAL,
			"device %s is shared by MPS, whose clients keep what they began with",
			wanted->uuid);
	return result;
}

struct share_device grant_resized(
	const struct grant_node *node, const struct assignment_device *wanted, bool has_turns)
{
	struct share_device device = {.memory_bytes = (uint64_t)wanted->memory_mib * MIB_BYTES,
		.compute = compute_of(node, (unsigned)wanted->cores_percent, has_turns)};

	snprintf(device.uuid, sizeof(device.uuid), "%s", wanted->uuid);
	return device;
}

static int check_count(
	const char *container, const struct assignment_slot *slot, size_t id_count, struct err *err)
{
	if (slot->count == id_count && id_count)
		return 0;
	return err_set(err, EINVAL,
		"device number not matched: %zu are assigned to container %.80s, and the kubelet "
		"chose %zu",
		slot->count, container, id_count);
}

bool grant_is_of_parts(const struct grant_node *node, const struct assignment_slot *slot)
{
	const struct inventory_device *device =
		slot->count ? inventory_lookup(node->inventory, slot->devices[0].uuid) : NULL;

	return device && is_cut(node, device);
}

int grant_plan_parts(const struct grant_node *node, const char *container,
	const struct assignment_slot *slot, size_t id_count, struct grant *ret_grant,
	struct err *err)
{
	struct grant g = {.is_of_parts = true};
	int result = check_count(container, slot, id_count, err);

	if (!result && slot->count > SHARE_DEVICES)
		result = err_set(
			err, EINVAL, "a container has no more than %d instances", SHARE_DEVICES);
	for (size_t i = 0; i < slot->count && !result; i++) {
		result = check_any(
			node, &slot->devices[i], &g.devices[g.device_count++].device, err);
		if (!result && !is_cut(node, g.devices[i].device))
			result = err_set(err, EINVAL,
				"device %s is whole, and others of container %.80s are in parts",
				slot->devices[i].uuid, container);
	}
	if (result)
		return result;
	grant_draw_unique(g.unique);
	*ret_grant = g;
	return 0;
}

int grant_plan(const struct grant_node *node, const struct grant_container *container,
	const struct assignment_slot *slot, char *const *ids, size_t id_count, const char *unique,
	struct grant *ret_grant, struct err *err)
{
	struct grant g = {.device_count = 0};
	int result;

	result = check_count(container->name, slot, id_count, err);
	if (!result && container->covering)
		result = err_set(err, EINVAL,
			"container %.80s mounts something of its own at %.120s, where its limits "
			"are",
			container->name, container->covering);
	if (result)
		return result;
	result = add_devices(node, container->asked, slot, &g, err);
	if (!result)
		result = choose_mps(node, &g, err);
	if (!result)
		result = name_it(node, container, unique, &g, err);
	if (result)
		return result;
	g.has_library =
		!(node->config->honours_disable_control && parse_is_on(container->disable_control));
	fill_share(node, container, &g);
	*ret_grant = g;
	return 0;
}
