/* SPDX-License-Identifier: Apache-2.0 */
/* The node's GPUs in mode mig. */
#include "plugin/mig/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/nvml_library.h"
#include "plugin/mig/cuts.h"
#include "plugin/mig/mig.h"

#define LOG_TOPIC  LOG_PODS

#define SOON_NS	   (100ull * 1000000)	/* several changes at once are looked at once */
#define LEFT_NS	   (5ull * 1000000000)	/* what is still used is tried again */
#define UNREADY_NS (30ull * 1000000000) /* and a GPU that is not in MIG mode */
#define GPU_PARTS  8

struct parts {
	struct parts_request request;
	struct loop *loop;
	struct loop_timer timer;
	const struct pods *pods; /* NULL: not known yet */
	uint64_t in_mode, unready;
	uint64_t unknown; /* some pod's instance is not known: none of the device is removed */
	bool is_restored, is_stale; /* what pods were given was there once; it may be gone since */
	char *claimed; /* what pods claimed when that was put right last; NULL: never, or it is not right */
	struct cuts *cuts; /* of each device */
};

static uint64_t bit(unsigned device)
{
	return UINT64_C(1) << device;
}

static const struct inventory_device *device_at(const struct parts *parts, unsigned i)
{
	return &parts->request.devices->device[i];
}

/* ----- MIG mode ----- */

static void set_unready(struct parts *parts, unsigned device, const char *why)
{
	uint64_t before = parts->unready;

	if (why)
		parts->unready |= bit(device);
	else
		parts->unready &= ~bit(device);
	if (parts->unready == before)
		return;
	if (why)
		log_warn("a device cannot be handed out in its mode",
			STR("device", device_at(parts, device)->uuid), STR("why", why));
	else
		log_info("a device is in MIG mode", STR("device", device_at(parts, device)->uuid));
}

static void enable(struct parts *parts, const struct nvml_library *library, unsigned device)
{
	struct err err = ERR_NULL;
	struct partition_gpu gpu;
	int r = partition_find_gpu(
		&library->driver, &library->node, device_at(parts, device)->uuid, &gpu, &err);

	if (!r && !parts->cuts[device].count)
		cuts_read(parts->request.config, device_at(parts, device), &gpu.profiles,
			&parts->cuts[device]);
	if (!r)
		r = partition_enable(&gpu, &err);
	set_unready(parts, device, r ? err.text : NULL);
}

/* ----- what is not claimed ----- */

static void forget_claimed(struct parts *parts)
{
	free(parts->claimed);
	parts->claimed = NULL;
}

static void take_unknown(struct parts *parts, const struct pod *first)
{
	uint64_t before = parts->unknown;

	parts->unknown = 0;
	for (unsigned i = 0; i < parts->request.devices->count; i++) {
		const char *uuid = device_at(parts, i)->uuid;

		if (!(parts->in_mode & bit(i)) || !claims_are_unknown(first, uuid))
			continue;
		parts->unknown |= bit(i);
		if (!(before & bit(i)))
			log_info("a pod does not say which instance it has; all of the device stay",
				STR("device", uuid));
	}
	if (parts->unknown != before)
		forget_claimed(parts);
}

static void sweep(struct parts *parts, const struct nvml_library *library, unsigned device,
	const struct instances *claims, unsigned *left, unsigned *removed)
{
	unsigned gone;

	if (parts->unknown & bit(device))
		return;
	*left += mig_sweep(&library->driver, &library->node, device_at(parts, device)->uuid,
		claims->at, claims->count, &gone);
	*removed += gone;
	if (gone)
		log_info("instances that no pod reserves are removed",
			STR("device", device_at(parts, device)->uuid), U64("instances", gone));
}

/* ----- the devices that runtimes know ----- */

static unsigned add_parts(const struct parts *parts, const struct nvml_library *library,
	unsigned device, struct partitions *list, struct cdi_part *ret_parts)
{
	const struct inventory_device *of = device_at(parts, device);
	struct err err = ERR_NULL;
	struct partition_gpu gpu;
	unsigned count = 0;

	if (partition_find_gpu(&library->driver, &library->node, of->uuid, &gpu, &err) ||
		partition_list(&gpu, list, &err))
		return 0;
	for (unsigned i = 0; i < list->count; i++) {
		struct cdi_part *part = &ret_parts[count];

		*part = (struct cdi_part){.uuid = list->at[i].uuid, .minor = of->minor};
		if (!list->at[i].is_whole)
			continue;
		if (capability_find(parts->request.capabilities, of->minor, list->at[i].instance,
			    list->at[i].compute, &part->capability, &err))
			log_warn("an instance is not specified", STR("instance", part->uuid),
				STR("why", err.text));
		else
			count++;
	}
	return count;
}

static int specify(const struct parts *parts, const struct nvml_library *library, struct err *err)
{
	_cleanup_free_ struct partitions *lists = NULL;
	_cleanup_free_ struct cdi_part *all = NULL;
	struct cdi_request request;

	if (!parts->request.cdi)
		return 0;
	lists = calloc(INVENTORY_MAX, sizeof(*lists));
	all = calloc(INVENTORY_MAX * GPU_PARTS, sizeof(*all));
	if (!lists || !all)
		return err_set(err, ENOMEM, "no memory");
	request = *parts->request.cdi;
	request.parts = all;
	for (unsigned i = 0; i < parts->request.devices->count; i++)
		if (parts->in_mode & bit(i))
			request.part_count +=
				add_parts(parts, library, i, &lists[i], &all[request.part_count]);
	return cdi_write(&request, err);
}

/* ----- after a change of the pods ----- */

static void restore_one(
	const struct nvml_library *library, const struct pod *pod, const struct instance *given)
{
	struct instance again = *given;
	struct err err = ERR_NULL;

	if (mig_is_there(&library->driver, &library->node, given))
		return;
	if (!mig_give(&library->driver, &library->node, &again, 1, &err) &&
		!strcmp(again.uuid, given->uuid)) {
		log_info("an instance is made again", STR("namespace", pod->space),
			STR("pod", pod->name), STR("instance", given->uuid));
		return;
	}
	log_error("an instance that a pod was given is not there any more",
		STR("namespace", pod->space), STR("pod", pod->name), STR("instance", given->uuid),
		STR("why", err.text[0] ? err.text : "in its place there is one of another name"));
}

/* The containers of a pod that is terminating are not started again. */
static void restore(struct parts *parts, const struct nvml_library *library)
{
	for (const struct pod *pod = pods_first(parts->pods); pod; pod = pod->next) {
		struct instances list;

		if (pod->is_over || pod->is_leaving || instances_decode_some(pod->instances, &list))
			continue;
		for (size_t i = 0; i < list.count; i++)
			if (list.at[i].is_given)
				restore_one(library, pod, &list.at[i]);
		instances_deinit(&list);
	}
	parts->is_restored = true;
	parts->is_stale = false;
}

/* *ret_left: instances that should not be there. */
static void put_right(struct parts *parts, const struct nvml_library *library,
	const struct instances *claims, unsigned *ret_left)
{
	bool is_stale = parts->is_stale || !parts->is_restored;
	struct err err = ERR_NULL;
	unsigned removed = 0;

	for (unsigned i = 0; i < parts->request.devices->count; i++)
		if (parts->in_mode & bit(i)) {
			if (is_stale || parts->unready & bit(i))
				enable(parts, library, i);
			sweep(parts, library, i, claims, ret_left, &removed);
		}
	if (is_stale)
		restore(parts, library);
	if ((removed || is_stale) && specify(parts, library, &err))
		log_warn("instances are not specified", STR("why", err.text));
}

/* Whether there is nothing to do, because pods claim what they did. */
static bool is_right(const struct parts *parts, const char *claimed)
{
	return parts->claimed && !parts->is_stale && !(parts->unready & parts->in_mode) &&
	       !strcmp(parts->claimed, claimed);
}

/* NVML is begun where something is to be done, and then only. */
static int look(struct parts *parts, unsigned *ret_left)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};
	struct instances claims;
	struct err err = ERR_NULL;
	char *claimed = NULL;
	int r = claims_list(pods_first(parts->pods), NULL, &claims);

	if (r)
		return r;
	take_unknown(parts, pods_first(parts->pods));
	r = instances_encode(&claims, &claimed);
	if (!r && !is_right(parts, claimed)) {
		r = nvml_library_open(NULL, &library, &err) ? -EIO : 0;
		if (!r)
			put_right(parts, &library, &claims, ret_left);
	}
	instances_deinit(&claims);
	forget_claimed(parts);
	if (r || *ret_left)
		free(claimed);
	else
		parts->claimed = claimed;
	return r;
}

static void pods_have_changed(void *context)
{
	struct parts *parts = context;
	bool was_restored = parts->is_restored;
	uint64_t unready = parts->unready;
	unsigned left = 0;

	if (look(parts, &left) || left)
		loop_timer_set(parts->loop, &parts->timer, clock_now_ns() + LEFT_NS);
	else if (parts->unready & parts->in_mode)
		loop_timer_set(parts->loop, &parts->timer, clock_now_ns() + UNREADY_NS);
	if (was_restored != parts->is_restored || unready != parts->unready)
		parts->request.changed(parts->request.context);
}

void parts_look(struct parts *parts, const struct pods *pods)
{
	parts->pods = pods;
	if (parts->in_mode && pods_are_known(pods))
		loop_timer_set(parts->loop, &parts->timer,
			clock_now_ns() + (parts->is_restored ? SOON_NS : 0));
}

void parts_look_at_devices(struct parts *parts)
{
	parts->is_stale = true;
	if (parts->pods)
		parts_look(parts, parts->pods);
}

bool parts_are_restored(const struct parts *parts)
{
	return !parts->in_mode || parts->is_restored;
}

uint64_t parts_unready(const struct parts *parts)
{
	return parts->unready;
}

const struct mig_profile *parts_profiles(
	const struct parts *parts, unsigned i, unsigned *ret_count, unsigned *ret_most)
{
	if (!(parts->in_mode & bit(i)))
		return NULL;
	*ret_count = parts->cuts[i].count;
	*ret_most = parts->cuts[i].most;
	return parts->cuts[i].profiles;
}

/* ----- one container ----- */

static int find_capabilities(const struct parts *parts, struct claims_given *given, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; i < given->count && !r; i++) {
		const struct instance *instance = &given->instances[i];

		r = capability_find(parts->request.capabilities,
			inventory_lookup(parts->request.devices, instance->gpu)->minor,
			instance->instance, instance->compute, &given->capabilities[i], err);
	}
	return r;
}

static int make(struct parts *parts, const struct claims_wanted *wanted, struct claims_given *given,
	struct err *err)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};
	struct instances claims = INSTANCES_NULL;
	unsigned left = 0, removed = 0;
	int r = nvml_library_open(NULL, &library, err) ? -EIO : 0;

	/* the pod may be gone before its claim is looked at */
	forget_claimed(parts);
	take_unknown(parts, wanted->first);
	if (!r && claims_list(wanted->first, wanted, &claims))
		r = err_set(err, ENOMEM, "no memory");
	if (!r)
		r = claims_check(&claims, given, err);
	for (unsigned i = 0; i < parts->request.devices->count && !r; i++)
		if (parts->in_mode & bit(i))
			sweep(parts, &library, i, &claims, &left, &removed);
	instances_deinit(&claims);
	if (!r)
		r = mig_give(&library.driver, &library.node, given->instances, given->count, err);
	/* a program that is about to end with its pod */
	if (r == -EBUSY && left)
		return -EAGAIN;
	if (r == -EBUSY)
		given->holder = claims_find_holder(wanted, given);
	if (!r)
		r = find_capabilities(parts, given, err);
	return r ? r : specify(parts, &library, err);
}

int parts_give(struct parts *parts, const struct claims_wanted *wanted,
	struct claims_given *ret_given, struct err *err)
{
	struct instances list = INSTANCES_NULL;
	int r = instances_decode(wanted->pod->instances, &list, err);

	if (r)
		return r;
	*ret_given = (struct claims_given){.count = 0};
	r = claims_choose(wanted, &list, ret_given, err);
	if (!r)
		r = make(parts, wanted, ret_given, err);
	if (!r && claims_record(&list, wanted, ret_given))
		r = err_set(err, ENOMEM, "no memory");
	instances_deinit(&list);
	return r;
}

/* ----- begin and end ----- */

static int take_devices(struct parts *parts, struct err *err)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};

	if (parts->request.config->mig_strategy != CONFIG_MIG_NONE)
		log_warn("mig-strategy is not used: instances are handed out where operatingmode "
			 "is mig");
	for (unsigned i = 0; i < parts->request.devices->count; i++) {
		if (config_mode_of(parts->request.config, device_at(parts, i)) == CONFIG_MIG)
			parts->in_mode |= bit(i);
		else if (device_at(parts, i)->is_mig)
			set_unready(parts, i, "it is in MIG mode, and its mode here is another");
	}
	if (parts->in_mode && nvml_library_open(NULL, &library, err))
		return -EIO;
	for (unsigned i = 0; i < parts->request.devices->count; i++)
		if (parts->in_mode & bit(i))
			enable(parts, &library, i);
	return 0;
}

int parts_new(struct loop *loop, const struct parts_request *request, struct parts **ret_parts,
	struct err *err)
{
	struct parts *parts = calloc(1, sizeof(*parts));
	int r;

	if (parts)
		parts->cuts = calloc(INVENTORY_MAX, sizeof(*parts->cuts));
	if (!parts || !parts->cuts) {
		free(parts);
		return err_set(err, ENOMEM, "no memory");
	}
	parts->request = *request;
	parts->loop = loop;
	parts->timer = (struct loop_timer){.due = pods_have_changed, .context = parts};
	r = take_devices(parts, err);
	if (r)
		parts_free(parts);
	else
		*ret_parts = parts;
	return r;
}

void parts_free(struct parts *parts)
{
	if (!parts)
		return;
	loop_timer_clear(parts->loop, &parts->timer);
	free(parts->cuts);
	free(parts->claimed);
	free(parts);
}
