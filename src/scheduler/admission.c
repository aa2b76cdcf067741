/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod may be created as it is, and what is added to it. */
#include "scheduler/admission.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/base64.h"
#include "kube/wish.h"
#include "scheduler/enlarge.h"
#include "scheduler/object.h"

#define PATH_BYTES 512

/* One pod's way through the rules. What is changed is changed in a copy, and noted as a patch. */
struct review {
	const struct admission_rules *rules;
	json_t *pod;   /* the copy */
	json_t *patch; /* an array of operations */
	bool has_device, is_out_of_memory;
	char denied[ADMISSION_WORDS_BYTES]; /* why it is; "": it is not */
};

/* Of the scheduler and the device plugin alone. */
static const char *const own_annotations[] = {"hami.io/vgpu-node", "hami.io/vgpu-time",
	"hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated",
	"hami.io/vgpu-mig-allocations", "hami.io/bind-phase", "hami.io/bind-time"};

static bool is_said(const char *text)
{
	return text && *text;
}

static void __attribute__((format(printf, 2, 3)))
deny(struct review *review, const char *format, ...)
{
	va_list arguments;

	if (*review->denied)
		return;
	va_start(arguments, format);
	vsnprintf(review->denied, sizeof(review->denied), format, arguments);
	va_end(arguments);
}

/* Takes the value, which may be NULL for want of memory or with "remove". */
static void note(struct review *review, const char *operation, const char *path, json_t *value)
{
	json_t *one =
		value ? json_pack("{s:s, s:s, s:O}", "op", operation, "path", path, "value", value)
		      : json_pack("{s:s, s:s}", "op", operation, "path", path);

	json_decref(value);
	if (!one || json_array_append_new(review->patch, one))
		review->is_out_of_memory = true;
}

/* A key as a part of a path: "/" is "~1", and "~" is "~0". */
static void append_key(char *path, const char *key)
{
	size_t used = strlen(path);

	path[used++] = '/';
	for (; *key && used + 3 < PATH_BYTES; key++) {
		if (*key != '/' && *key != '~') {
			path[used++] = *key;
			continue;
		}
		path[used++] = '~';
		path[used++] = *key == '/' ? '1' : '0';
	}
	path[used] = '\0';
}

/*
 * Sets a member of an object at a path. Takes the value. Where the object is not there, it is made, and then the patch
 * makes it, too.
 */
static void set_member(
	struct review *review, json_t *parent, const char *path, const char *key, json_t *value)
{
	bool was_there = json_object_get(parent, key);
	char full[PATH_BYTES];

	snprintf(full, sizeof(full), "%s", path);
	append_key(full, key);
	if (!value || json_object_set(parent, key, value))
		review->is_out_of_memory = true;
	note(review, was_there ? "replace" : "add", full, value);
}

/* The containers of both kinds, init containers first. */
struct cursor {
	const char *list;
	size_t at;
	json_t *container;
	char path[64];
};

static bool next_container(const struct review *review, struct cursor *cursor)
{
	json_t *spec = json_object_get(review->pod, "spec");

	if (!cursor->list)
		cursor->list = "initContainers";
	else
		cursor->at++;
	if (cursor->at >= json_array_size(json_object_get(spec, cursor->list))) {
		if (*cursor->list == 'c' || !json_array_size(json_object_get(spec, "containers")))
			return false;
		cursor->list = "containers";
		cursor->at = 0;
	}
	cursor->container = json_array_get(json_object_get(spec, cursor->list), cursor->at);
	snprintf(cursor->path, sizeof(cursor->path), "/spec/%s/%zu", cursor->list, cursor->at);
	return true;
}

static const char *name_of(const json_t *container)
{
	const char *name = json_string_value(json_object_get(container, "name"));

	return name ? name : "";
}

/* Sets a limit of a container. */
static void set_limit(
	struct review *review, const struct cursor *cursor, const char *name, int64_t value)
{
	json_t *resources = json_object_get(cursor->container, "resources"), *amount, *limits;
	char path[PATH_BYTES], text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	amount = json_string(text);
	limits = json_object_get(resources, "limits");
	snprintf(path, sizeof(path), "%s/resources%s", cursor->path,
		json_is_object(limits) ? "/limits" : "");
	if (json_is_object(limits))
		set_member(review, limits, path, name, amount);
	else
		set_member(review, resources, path, "limits", json_pack("{s:o}", name, amount));
}

/* The variable is the pod's own or is added; of two with one name the later counts, and tools complain. */
static void set_variable(
	struct review *review, const struct cursor *cursor, const char *name, const char *value)
{
	json_t *list = json_object_get(cursor->container, "env"), *variable,
	       *own = json_pack("{s:s, s:s}", "name", name, "value", value);
	size_t i, at;
	char path[PATH_BYTES];

	at = json_array_size(list);
	json_array_foreach(list, i, variable) if (!strcmp(name_of(variable), name)) at = i;
	snprintf(path, sizeof(path), "%s/env/%zu", cursor->path, at);
	if (!own)
		review->is_out_of_memory = true;
	else if (!json_is_array(list))
		set_member(review, cursor->container, cursor->path, "env", json_pack("[o]", own));
	else if (at < json_array_size(list)) {
		review->is_out_of_memory |= json_array_set(list, at, own) != 0;
		note(review, "replace", path, own);
	} else {
		review->is_out_of_memory |= json_array_append(list, own) != 0;
		note(review, "add", path, own);
	}
}

static bool is_limited(const json_t *container, const char *name)
{
	const json_t *resources = json_object_get(container, "resources");

	return is_said(name) && json_object_get(json_object_get(resources, "limits"), name);
}

static void check_percentage(struct review *review, const json_t *container)
{
	const char *name = review->rules->demand.percentage;
	int64_t value;

	if (!demand_is_asked(container, name) ||
		(demand_amount(container, name, &value) && value >= 0 && value <= 100))
		return;
	deny(review, "container %s: %s is not a whole number from 0 to 100", name_of(container),
		name);
}

/* Filter could only take the container for one that asks for nothing, and no device plugin would serve it. */
static void check_amounts(struct review *review, const json_t *container)
{
	const struct demand_rules *rules = &review->rules->demand;
	const char *const names[] = {rules->count, rules->memory, rules->cores};
	int64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (demand_is_asked(container, names[i]) &&
			!demand_amount(container, names[i], &value))
			deny(review, "container %s: %s is no amount that there is",
				name_of(container), names[i]);
}

/* Whoever asks for a device and says nothing of how much of it, means all of it. */
static bool means_whole_devices(const struct demand_rules *rules, const json_t *container)
{
	int64_t percentage;

	if (!demand_is_asked(container, rules->count) || demand_is_asked(container, rules->cores))
		return false;
	if (!demand_is_asked(container, rules->percentage))
		return !demand_is_asked(container, rules->memory);
	return demand_amount(container, rules->percentage, &percentage) && percentage == 100;
}

static bool add_devices(struct review *review, const struct cursor *cursor)
{
	const struct demand_rules *rules = &review->rules->demand;
	const json_t *container = cursor->container;
	bool has_device = is_limited(container, rules->count);

	if (!has_device && review->rules->default_count > 0 &&
		(is_limited(container, rules->cores) || is_limited(container, rules->memory) ||
			is_limited(container, rules->percentage))) {
		set_limit(review, cursor, rules->count, review->rules->default_count);
		has_device = true;
	}
	if (!means_whole_devices(rules, container))
		return has_device;
	set_limit(review, cursor, rules->cores, 100);
	return true;
}

static void change_container(struct review *review, const struct cursor *cursor)
{
	const struct admission_rules *rules = review->rules;
	int64_t priority;
	char text[24];
	bool has_device;

	check_percentage(review, cursor->container);
	check_amounts(review, cursor->container);
	if (is_limited(cursor->container, rules->priority) &&
		demand_amount(cursor->container, rules->priority, &priority)) {
		snprintf(text, sizeof(text), "%lld", (long long)priority);
		set_variable(review, cursor, "CUDA_TASK_PRIORITY", text);
	}
	has_device = add_devices(review, cursor);
	if (has_device && is_said(rules->core_policy) && strcmp(rules->core_policy, "default") != 0)
		set_variable(review, cursor, "GPU_CORE_UTILIZATION_POLICY", rules->core_policy);
	if (!has_device && rules->hides_devices)
		set_variable(review, cursor, "NVIDIA_VISIBLE_DEVICES", "none");
	review->has_device |= has_device;
}

/* A privileged container has all devices of the node, whatever it was given. */
static void check_privileges(struct review *review)
{
	struct cursor cursor = {0};

	while (next_container(review, &cursor))
		if (json_is_true(json_object_get(
			    json_object_get(cursor.container, "securityContext"), "privileged")))
			deny(review, "container %s is privileged", name_of(cursor.container));
}

/* What the pod takes of its quota at the most of any moment; a percentage is counted when its device is known. */
static bool is_within_quota(
	const struct review *review, const struct demand *demand, const struct books *books)
{
	struct fit_room room = books_room(books, demand->namespace);
	int64_t running_mib = 0, running_cores = 0;

	for (size_t i = 0; i < demand->pod.request_count; i++) {
		const struct fit_request *request = &demand->pod.requests[i];
		int64_t mib, cores;

		if (__builtin_mul_overflow(request->devices, request->memory_mib, &mib) ||
			__builtin_mul_overflow(request->devices, request->cores, &cores) ||
			__builtin_add_overflow(mib, running_mib, &mib) ||
			__builtin_add_overflow(cores, running_cores, &cores) ||
			mib > room.memory_mib || cores > room.cores)
			return false;
		if (request->kind == FIT_INIT)
			continue;
		running_mib = mib;
		running_cores = cores;
	}
	return true;
}

static void check_quota(struct review *review, const struct books *books, const char *namespace)
{
	struct demand demand;

	if (demand_read_containers(&review->rules->demand, review->pod, &demand)) {
		review->is_out_of_memory = true;
		return;
	}
	if (!*demand.namespace && namespace)
		demand.namespace = namespace;
	if (demand.asks && !is_within_quota(review, &demand, books))
		deny(review, "exceeding resource quota");
	demand_deinit(&demand);
}

/* Some other scheduler's pod is none of ours. */
static bool is_others(const struct admission_rules *rules, const json_t *spec)
{
	const char *name = json_string_value(json_object_get(spec, "schedulerName"));

	if (!is_said(name) || (rules->takes_default && !strcmp(name, "default-scheduler")))
		return false;
	return !is_said(rules->scheduler) || strcmp(name, rules->scheduler) != 0;
}

static void change_pod(struct review *review)
{
	const struct admission_rules *rules = review->rules;
	json_t *spec = json_object_get(review->pod, "spec");
	const char *name = json_string_value(json_object_get(spec, "schedulerName"));

	if (!json_object_get(spec, "runtimeClassName") && is_said(rules->runtime_class))
		set_member(review, spec, "/spec", "runtimeClassName",
			json_string(rules->runtime_class));
	if (!is_said(rules->scheduler))
		return;
	if (!name || strcmp(name, rules->scheduler) != 0)
		set_member(review, spec, "/spec", "schedulerName", json_string(rules->scheduler));
	if (is_said(json_string_value(json_object_get(spec, "nodeName"))))
		deny(review, "pod has node assigned");
}

static void remove_annotation(struct review *review, const char *key)
{
	json_t *annotations =
		json_object_get(json_object_get(review->pod, "metadata"), "annotations");
	char path[PATH_BYTES] = "/metadata/annotations";

	if (!json_object_get(annotations, key))
		return;
	append_key(path, key);
	json_object_del(annotations, key);
	note(review, "remove", path, NULL);
}

static void remove_annotations(struct review *review)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_annotations); i++)
		remove_annotation(review, own_annotations[i]);
	/* a wish is for slices that run */
	remove_annotation(review, WISH_ANNOTATION);
}

static void review_new(struct review *review, const struct books *books, const char *namespace)
{
	struct cursor cursor = {0};

	remove_annotations(review);
	while (next_container(review, &cursor))
		if (json_is_object(cursor.container))
			change_container(review, &cursor);
		else
			deny(review, "%s is no object", cursor.path);
	if (review->has_device) {
		check_privileges(review);
		change_pod(review);
	}
	check_quota(review, books, namespace);
}

static bool is_trusted(const struct admission_rules *rules, const char *user)
{
	for (const char *const *trusted = rules->trusted; user && trusted && *trusted; trusted++)
		if (!strcmp(*trusted, user))
			return true;
	return false;
}

static bool is_changed(const struct review *review, const json_t *old, const char *key)
{
	const char *before = demand_annotation(old, key),
		   *after = demand_annotation(review->pod, key);

	return before != after && (!before || !after || strcmp(before, after) != 0);
}

/* What its running slices are to be beyond what they are has to be left of the quota. */
static void check_wish(struct review *review, const struct books *books, const json_t *request)
{
	const char *namespace = json_string_value(json_object_get(request, "namespace"));
	const struct fit_room room = books_room_for_wish(
		books, namespace ? namespace : "", object_text(review->pod, "uid"));
	struct err err = ERR_NULL;
	int r = enlarge_check(&review->rules->demand, review->pod, &room, &err);

	if (r == -ENOMEM)
		review->is_out_of_memory = true;
	else if (r)
		deny(review, "%s", err.text);
}

/* A pod that is there: only what is ours is looked at. */
static void review_changed(struct review *review, const struct books *books, const json_t *request)
{
	const char *user = json_string_value(
		json_object_get(json_object_get(request, "userInfo"), "username"));
	const json_t *old = json_object_get(request, "oldObject");

	for (size_t i = 0; i < ARRAY_SIZE(own_annotations); i++) {
		if (!is_changed(review, old, own_annotations[i]))
			continue;
		if (!is_trusted(review->rules, user))
			deny(review,
				"annotation %s is changed by the scheduler and the device plugin "
				"alone",
				own_annotations[i]);
	}
	if (is_changed(review, old, WISH_ANNOTATION))
		check_wish(review, books, request);
}

static json_t *response(const struct review *review, const char *uid, const char *remark)
{
	json_t *answer = json_pack("{s:s, s:b}", "uid", uid, "allowed", !*review->denied);
	_cleanup_free_ char *patch = NULL, *encoded = NULL;

	if (*review->denied)
		json_object_set_new(answer, "status",
			json_pack("{s:s, s:s, s:i}", "message", review->denied, "reason",
				"Forbidden", "code", 403));
	else if (remark)
		json_object_set_new(
			answer, "status", json_pack("{s:s, s:i}", "message", remark, "code", 200));
	if (*review->denied || !json_array_size(review->patch))
		return answer;
	patch = json_dumps(review->patch, JSON_COMPACT);
	encoded = patch ? base64_encode(patch, strlen(patch)) : NULL;
	if (encoded && !json_object_set_new(answer, "patchType", json_string("JSONPatch")) &&
		!json_object_set_new(answer, "patch", json_string(encoded)))
		return answer;
	json_decref(answer);
	return NULL;
}

static bool is_update(const json_t *request)
{
	const char *operation = json_string_value(json_object_get(request, "operation"));

	return operation && !strcmp(operation, "UPDATE");
}

/* The remark that an answer has which lets a pod pass as it is. */
static const char *look(struct review *review, const struct books *books, const json_t *request)
{
	const json_t *spec = json_object_get(review->pod, "spec");

	if (is_update(request)) {
		review_changed(review, books, request);
		return NULL;
	}
	if (!json_array_size(json_object_get(spec, "containers"))) {
		deny(review, "pod has no containers");
		return NULL;
	}
	if (is_others(review->rules, spec)) {
		remove_annotations(review);
		return "pod already has different scheduler assigned";
	}
	review_new(review, books, json_string_value(json_object_get(request, "namespace")));
	return NULL;
}

static const char *look_from_outside(
	struct review *review, const struct books *books, const json_t *request)
{
	if (is_update(request))
		review_changed(review, books, request);
	else
		remove_annotations(review);
	return NULL;
}

static int check_review(const json_t *request, const char *version, struct err *err)
{
	if (!version || (strcmp(version, "admission.k8s.io/v1") != 0 &&
				strcmp(version, "admission.k8s.io/v1beta1") != 0))
		return err_set(err, EINVAL,
			"apiVersion '%s' is not admission.k8s.io/v1 or admission.k8s.io/v1beta1",
			version ? version : "");
	if (!json_string_value(json_object_get(request, "uid")))
		return err_set(err, EINVAL, "request.uid is no text");
	if (!json_is_object(json_object_get(request, "object")))
		return err_set(err, EINVAL, "request.object is no object");
	return 0;
}

typedef const char *look_fn(
	struct review *review, const struct books *books, const json_t *request);

static int answer_by(look_fn *look_at, const struct admission_rules *rules,
	const struct books *books, const json_t *review_object, json_t **ret_answer,
	struct err *err)
{
	const json_t *request = json_object_get(review_object, "request");
	const char *version = json_string_value(json_object_get(review_object, "apiVersion"));
	struct review review = {.rules = rules};
	json_t *its = NULL;
	int result = check_review(request, version, err);
	const char *remark;

	if (result)
		return result;
	review.pod = json_deep_copy(json_object_get(request, "object"));
	review.patch = json_array();
	if (review.pod && review.patch) {
		remark = look_at(&review, books, request);
		if (!review.is_out_of_memory)
			its = response(&review, json_string_value(json_object_get(request, "uid")),
				remark);
	}
	json_decref(review.pod);
	json_decref(review.patch);
	*ret_answer = its ? json_pack("{s:s, s:s, s:o}", "apiVersion", version, "kind",
				    "AdmissionReview", "response", its)
			  : NULL;
	return *ret_answer ? 0 : err_set(err, ENOMEM, "no memory");
}

int admission_answer(const struct admission_rules *rules, const struct books *books,
	const json_t *review, json_t **ret_answer, struct err *err)
{
	return answer_by(look, rules, books, review, ret_answer, err);
}

int admission_guard(const struct admission_rules *rules, const struct books *books,
	const json_t *review, json_t **ret_answer, struct err *err)
{
	return answer_by(look_from_outside, rules, books, review, ret_answer, err);
}

int admission_change(const struct admission_rules *rules, const struct books *books,
	const char *namespace, const json_t *pod, json_t **ret_pod,
	char ret_denied[ADMISSION_WORDS_BYTES], const char **ret_remark)
{
	struct review review = {.rules = rules, .pod = json_deep_copy(pod), .patch = json_array()};
	json_t *request = json_pack("{s:s}", "namespace", namespace);
	const char *remark = NULL;

	review.is_out_of_memory = !review.pod || !review.patch || !request;
	if (!review.is_out_of_memory)
		remark = look(&review, books, request);
	json_decref(review.patch);
	json_decref(request);
	if (review.is_out_of_memory) {
		json_decref(review.pod);
		return -ENOMEM;
	}
	strcpy(ret_denied, review.denied);
	*ret_pod = review.pod;
	*ret_remark = remark;
	return 0;
}
