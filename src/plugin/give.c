/* SPDX-License-Identifier: Apache-2.0 */
/* What a container gets. */
#include "plugin/give.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kube/assignment.h"

static const char *const control_files[] = {
	"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"};

static const char *path_or_null(const char *path)
{
	return *path ? path : NULL;
}

/* Files of theirs that HAMi's containers get where the host has them; the path is the caller's room. */
static const char *path_if_there(const char *folder, const char *name, char *room, size_t size)
{
	snprintf(room, size, "%s/%s", folder, name);
	return access(room, F_OK) ? NULL : room;
}

/* Of the channels that the configuration names, those that this node has. */
static size_t find_channels(const struct config *config, unsigned *ret_channels)
{
	char path[64];
	size_t count = 0;

	for (unsigned i = 0; i < config->imex_channel_count; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia-caps-imex-channels/channel%u",
			config->imex_channels[i]);
		if (!access(path, F_OK))
			ret_channels[count++] = config->imex_channels[i];
	}
	return count;
}

static int make_answer(const struct giver *giver, const struct grant *grant,
	const struct prepared *prepared, const struct mps_place *mps,
	V1beta1__ContainerAllocateResponse **ret_answer, struct err *err)
{
	const char *there[ARRAY_SIZE(control_files)], *hook = giver->settings.place.hook;
	char license[CONTAINER_PATH_BYTES], validator[CONTAINER_PATH_BYTES];
	unsigned channels[CONFIG_IMEX_MOST];
	struct grant_paths paths = {
		.library = prepared->library,
		.preload = prepared->preload,
		.region_folder = prepared->region_folder,
		.region_file = prepared->region_file,
		.share_folder = prepared->share_folder,
		.lock_folder = path_or_null(prepared->lock_folder),
		.turns_folder = grant->is_mps ? NULL : path_or_null(prepared->turns_folder),
		.mps_pipe = mps->pipe,
		.mps_memory = mps->memory,
		.control_files = there,
		.imex_channels = channels,
		.imex_channel_count = find_channels(giver->node.config, channels),
		.license = path_if_there(hook, "license", license, sizeof(license)),
		.validator = path_if_there(hook, "vgpuvalidator", validator, sizeof(validator)),
	};

	for (size_t i = 0; i < ARRAY_SIZE(control_files); i++)
		if (!access(control_files[i], F_OK))
			there[paths.control_file_count++] = control_files[i];
	for (unsigned i = 0; i < grant->device_count; i++)
		paths.records[i] = path_or_null(prepared->records[i]);
	return grant_answer(&giver->node, grant, &paths, ret_answer, err);
}

static int pack(
	const V1beta1__ContainerAllocateResponse *answer, uint8_t **ret_message, size_t *ret_bytes)
{
	uint8_t *message =
		malloc(v1beta1__container_allocate_response__get_packed_size(answer) + 1);

	if (!message)
		return -ENOMEM;
	*ret_bytes = v1beta1__container_allocate_response__pack(answer, message);
	*ret_message = message;
	return 0;
}

/* The grant is made ready on the host, and only then answered. */
static int give_grant(const struct giver *giver, const struct give_request *request,
	const struct grant *grant, uint8_t **ret_message, size_t *ret_bytes, struct err *err)
{
	const struct prepare_request wanted = {
		.pod_uid = request->pod->uid,
		.container = request->container->name,
		.pod_space = request->pod->space,
		.pod_name = request->pod->name,
		.share = &grant->share,
		.flush = request->flush,
	};
	V1beta1__ContainerAllocateResponse *answer;
	struct mps_place mps = {.pipe = ""};
	struct prepared prepared;
	int result =
		grant->is_mps ? mps_join(giver->mps, grant->devices[0].device->uuid, &mps, err) : 0;

	if (!result)
		result = prepare_container(&giver->settings, &wanted, &prepared, err);
	if (!result)
		result = make_answer(giver, grant, &prepared, &mps, &answer, err);
	if (result)
		return result;
	result = pack(answer, ret_message, ret_bytes);
	v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	return result ? err_set(err, ENOMEM, "no memory") : 0;
}

/* A container that was prepared before keeps its region's name. */
static void choose_unique(const struct giver *giver, const struct give_request *request,
	char ret_unique[CONTAINER_CACHE_BYTES])
{
	if (prepare_find_unique(
		    &giver->settings, request->pod->uid, request->container->name, ret_unique))
		grant_draw_unique(ret_unique);
}

/* What is there of the node's files is the same for all, and a part of a device needs no more. */
static int answer_parts(const struct giver *giver, const struct grant *grant, uint8_t **ret_message,
	size_t *ret_bytes, struct err *err)
{
	static const struct prepared none = {.library = ""};
	static const struct mps_place no_mps = {.pipe = ""};
	V1beta1__ContainerAllocateResponse *answer;
	int result = make_answer(giver, grant, &none, &no_mps, &answer, err);

	if (result)
		return result;
	result = pack(answer, ret_message, ret_bytes);
	v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	return result ? err_set(err, ENOMEM, "no memory") : 0;
}

/* Instances need no share: the hardware holds what they are. */
static int give_parts(const struct giver *giver, const struct give_request *request,
	const struct assignment_slot *slot, struct given *ret_given, struct err *err)
{
	const struct claims_wanted wanted = {
		request->pods, request->pod, request->container->index, slot};
	struct claims_given given = {.holder = NULL};
	struct grant grant;
	int result = grant_plan_parts(
		&giver->node, request->container->name, slot, request->id_count, &grant, err);

	if (!result && !giver->parts)
		result = err_set(err, EINVAL, "this node hands out no instances");
	if (!result)
		result = parts_give(giver->parts, &wanted, &given, err);
	ret_given->holder = given.holder;
	if (result)
		return result;
	for (unsigned i = 0; i < given.count; i++)
		grant.devices[i].part =
			(struct grant_part){given.instances[i].uuid, given.capabilities[i]};
	result = answer_parts(giver, &grant, &ret_given->message, &ret_given->bytes, err);
	if (result)
		free(given.annotation);
	else
		ret_given->instances = given.annotation;
	return result;
}

static int give_whole(const struct giver *giver, const struct give_request *request,
	const struct assignment_slot *slot, struct given *ret_given, struct err *err)
{
	const struct pod_container *of = request->container;
	const struct grant_asked asked = {of->memory_mib, of->memory_percent, of->cores_percent};
	const struct grant_container container = {
		.asked = &asked,
		.pod_uid = request->pod->uid,
		.name = request->container->name,
		.priority = request->container->priority < 0 ? GRANT_NOT_GIVEN
							     : request->container->priority,
		.disable_control = request->container->disable_control,
		.covering = request->container->covering,
	};
	char unique[CONTAINER_CACHE_BYTES];
	struct grant grant;
	int result;

	choose_unique(giver, request, unique);
	result = grant_plan(&giver->node, &container, slot, request->ids, request->id_count, unique,
		&grant, err);
	return result ? result
		      : give_grant(giver, request, &grant, &ret_given->message, &ret_given->bytes,
				err);
}

int give(const struct giver *giver, const struct give_request *request, struct given *ret_given,
	struct err *err)
{
	_cleanup_(assignment_deinit) struct assignment assignment = ASSIGNMENT_NULL;
	int result = assignment_decode(request->slot, &assignment, err);

	*ret_given = (struct given){.message = NULL};
	if (result)
		return result;
	if (!assignment.count)
		return err_set(err, EINVAL, "device request not found");
	if (grant_is_of_parts(&giver->node, &assignment.slots[0]))
		return give_parts(giver, request, &assignment.slots[0], ret_given, err);
	return give_whole(giver, request, &assignment.slots[0], ret_given, err);
}

int give_prefer(const struct giver *giver, const char *slot, struct prefer_request *request,
	const char **ret_ids)
{
	request->devices = giver->node.inventory;
	request->topology = &giver->topology;
	return slot ? prefer_reserved(slot, request, ret_ids) : prefer_nearest(request, ret_ids);
}
