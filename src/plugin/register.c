/* SPDX-License-Identifier: Apache-2.0 */
/* The node's annotation by which the scheduler knows its devices. */
#include "plugin/register.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "plugin/devices/score.h"

#define LOG_TOPIC LOG_PODS

/* One that is NULL is left out. */
#define ANNOTATIONS "{s:{s:{s:s,s:s*}}}"

struct registration {
	struct kube_client *client;
	struct node *node;
	struct kube_call *call; /* NULL: nothing is written */
	struct loop_timer timer;
	char *text;
	const char *scores;
	unsigned failed;
};

/* Other readers know a device of ours by this word in its type. */
static json_t *type_of(const char *name)
{
	return strncmp(name, "NVIDIA", 6) ? json_sprintf("NVIDIA-%s", name) : json_string(name);
}

static int set(json_t *object, const char *key, json_t *value)
{
	return value ? json_object_set_new(object, key, value) : -1;
}

/* What is zero, empty or false is left out, as its readers expect. */
static int set_number(json_t *object, const char *key, uint64_t number)
{
	return number ? set(object, key, json_integer((json_int_t)number)) : 0;
}

static json_t *profile_object(const struct mig_profile *profile)
{
	json_t *places = json_array();

	for (size_t i = 0; i < profile->place_count; i++)
		if (json_array_append_new(
			    places, json_pack("{s:i, s:i}", "start", profile->places[i].start,
					    "size", profile->places[i].size)))
			break;
	return json_pack("{s:s, s:I, s:I, s:i, s:o}", "name", profile->name, "memoryMB",
		(json_int_t)profile->memory_mib, "core", (json_int_t)profile->cores, "sliceCount",
		(int)profile->slices, "placements", places);
}

static json_t *profile_list(const struct register_device *device)
{
	json_t *list = json_array();
	int result = 0;

	for (unsigned i = 0; i < device->profile_count && !result; i++)
		result = json_array_append_new(list, profile_object(&device->profiles[i]));
	if (!result)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *device_object(const struct register_device *device)
{
	json_t *object = json_object();
	int result = set(object, "id", json_string(device->uuid));

	result |= set_number(object, "index", device->index);
	result |= set_number(object, "count", device->slices);
	result |= set_number(object, "devmem", device->memory_mib);
	result |= set_number(object, "devcore", device->cores_percent);
	result |= set(object, "type", type_of(device->name));
	result |= set_number(object, "numa", device->numa > 0 ? (uint64_t)device->numa : 0);
	if (device->mode && *device->mode)
		result |= set(object, "mode", json_string(device->mode));
	if (device->profile_count)
		result |= set(object, "migProfiles", profile_list(device));
	if (device->is_healthy)
		result |= set(object, "health", json_true());
	if (!result)
		return object;
	json_decref(object);
	return NULL;
}

int register_format(const struct register_device *devices, unsigned count, char **ret_text)
{
	json_t *list = json_array();
	int result = 0;

	for (unsigned i = 0; i < count && !result; i++)
		result = json_array_append_new(list, device_object(&devices[i]));
	*ret_text = result ? NULL : json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return *ret_text ? 0 : -ENOMEM;
}

static void was_written(void *context, const struct kube_result *result)
{
	struct registration *registration = context;

	registration->call = NULL;
	if (!result->outcome) {
		log_info("devices are registered for the scheduler",
			STR("node", node_name(registration->node)));
		registration->failed = 0;
		node_take(registration->node, result->body); /* compares */
		return;
	}
	if (!registration->failed++)
		log_warn("devices could not be registered for the scheduler; it is tried again",
			STR("node", node_name(registration->node)), STR("why", result->words));
	loop_timer_set(kube_client_loop(registration->client), &registration->timer,
		clock_now_ns() + kube_client_pause_ns(registration->client, registration->failed));
}

static void write_annotation(void *context)
{
	struct registration *registration = context;
	json_t *patch = json_pack(ANNOTATIONS, "metadata", "annotations", NODE_REGISTER,
		registration->text, SCORE_ANNOTATION, registration->scores);

	if (!patch || kube_patch(registration->client, node_path(registration->node), patch, NULL,
			      was_written, registration, &registration->call))
		loop_timer_set(kube_client_loop(registration->client), &registration->timer,
			clock_now_ns() + 1000000000ull);
	json_decref(patch);
}

static bool is_other(const char *is, const char *should_be)
{
	return should_be && (!is || strcmp(is, should_be) != 0);
}

void registration_compare(struct registration *registration)
{
	const struct node_state *state = node_state(registration->node);

	if (!state->is_known || registration->call || registration->timer.is_in)
		return;
	if (is_other(state->registered, registration->text) ||
		is_other(state->scores, registration->scores))
		write_annotation(registration);
}

void registration_set(struct registration *registration, char *text, const char *scores)
{
	free(registration->text);
	registration->text = text;
	registration->scores = scores;
	registration_compare(registration);
}

int registration_start(
	struct kube_client *client, struct node *node, struct registration **ret_registration)
{
	struct registration *registration = calloc(1, sizeof(*registration));

	if (!registration)
		return -ENOMEM;
	registration->client = client;
	registration->node = node;
	registration->timer = (struct loop_timer){.due = write_annotation, .context = registration};
	*ret_registration = registration;
	return 0;
}

void registration_stop(struct registration *registration)
{
	if (!registration)
		return;
	kube_cancel(registration->call);
	loop_timer_clear(kube_client_loop(registration->client), &registration->timer);
	free(registration->text);
	free(registration);
}
