/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HAMi v2.10.0 answered to recorded questions (vectors/README.md), asked of our scheduler. Each difference stands in
 * differences.def with its reason; what stands there and does not differ is a failure, too. What needs the program, and not its
 * decisions alone, is asked by replay.py.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "kube/assignment.h"
#include "kube/base64.h"
#include "kube/quantity.h"
#include "scheduler/admission.h"
#include "scheduler/filter.h"
#include "scheduler/reservation.h"

static const struct {
	const char *ids, *reason;
} differences[] = {
#define DIFFERENCE(ids, reason) {(ids), (reason)},
#include "tests/scheduler/differences.def"
};

static unsigned checked, failed;

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool has_flag(const json_t *config, const char *flag)
{
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(config, "flags"), i,
		value) if (!strcmp(json_string_value(value), flag)) return true;
	return false;
}

static struct demand_rules rules_of(const json_t *config)
{
	const json_t *changed = json_object_get(config, "nvidia");
	struct demand_rules rules = {
		.count = "nvidia.com/gpu",
		.memory = "nvidia.com/gpumem",
		.percentage = "nvidia.com/gpumem-percentage",
		.cores = "nvidia.com/gpucores",
		.node_policy =
			has_flag(config, "--node-scheduler-policy=spread") ? "spread" : "binpack",
		.device_policy =
			has_flag(config, "--gpu-scheduler-policy=binpack") ? "binpack" : "spread",
	};

	rules.default_memory_mib = json_integer_value(json_object_get(changed, "defaultMemory"));
	rules.default_cores = json_integer_value(json_object_get(changed, "defaultCores"));
	rules.memory_factor = json_integer_value(json_object_get(changed, "memoryFactor"));
	return rules;
}

/* A pod that was on the node before; what is not understood takes nothing. */
static void add_holder(
	struct books *books, const struct demand_rules *rules, json_t *pod, size_t at)
{
	struct reservation *reservation;
	struct err err = ERR_NULL;
	char uid[32];

	snprintf(uid, sizeof(uid), "uid-%zu", at);
	json_object_set_new(json_object_get(pod, "metadata"), "uid", json_string(uid));
	if (reservation_read(rules, pod, &reservation, &err))
		return;
	if (books_set_pod(books, reservation_pod(reservation)))
		abort();
	reservation_free(reservation);
}

static void add_nodes(struct books *books, const struct demand_rules *rules, const json_t *nodes)
{
	const json_t *node;
	json_t *pod;
	size_t i, k, at = 0;

	json_array_foreach(nodes, i, node)
	{
		const json_t *annotations = json_object_get(node, "annotations");
		struct registry_texts texts = {
			.devices =
				json_string_value(json_object_get(annotations, REGISTRY_DEVICES)),
			.scores = json_string_value(json_object_get(annotations, REGISTRY_SCORES)),
			.cordon = json_string_value(json_object_get(annotations, REGISTRY_CORDON)),
		};
		struct err err = ERR_NULL;
		int64_t slots;

		if (!quantity_of(json_object_get(node, "allocatable"), rules->count, &slots) ||
			!slots)
			texts.devices = NULL;
		if (books_set_node(books, text_of(node, "name"), &texts, &err) == -ENOMEM)
			abort();
		json_array_foreach(json_object_get(node, "pods"), k, pod)
			add_holder(books, rules, pod, at++);
	}
}

static int64_t limit_of(const json_t *hard, const char *resource, int64_t factor)
{
	char name[128];
	int64_t value;

	snprintf(name, sizeof(name), "limits.%s", resource);
	return quantity_of(hard, name, &value) ? value * (factor > 1 ? factor : 1) : INT64_MAX;
}

static void add_quotas(struct books *books, const struct demand_rules *rules, const json_t *vector)
{
	const json_t *hard;
	size_t i;

	json_array_foreach(json_object_get(vector, "quota"), i, hard)
	{
		struct fit_room limit = {limit_of(hard, rules->memory, rules->memory_factor),
			limit_of(hard, rules->cores, 1)};
		char name[32];

		snprintf(name, sizeof(name), "quota-%zu", i);
		if (books_set_quota(books,
			    text_of(json_object_get(json_object_get(vector, "pod"), "metadata"),
				    "namespace"),
			    name, &limit))
			abort();
	}
}

/* Our answer in the form of the recording. */
static json_t *answer(struct books *books, const struct demand *demand, const json_t *vector)
{
	const json_t *list = json_object_get(vector, "nodeNames"), *name;
	const char **names = calloc(json_array_size(list) + 1, sizeof(*names));
	struct filter_request request = {demand, names, json_array_size(list)};
	struct filter_answer ours;
	json_t *said = json_object(), *failed_nodes = json_object();
	size_t i;

	json_array_foreach(list, i, name) names[i] = json_string_value(name);
	if (filter(books, &request, &ours))
		abort();
	if (ours.chosen == FILTER_NONE) {
		for (i = 0; i < request.name_count; i++)
			json_object_set_new(failed_nodes, names[i], json_string(ours.reasons[i]));
		json_object_set_new(said, "nodeNames", json_null());
	} else {
		json_object_set_new(said, "nodeNames", json_pack("[s]", names[ours.chosen]));
		json_object_set_new(said, ASSIGNMENT_ALLOCATED, json_string(ours.devices));
		if (ours.instances)
			json_object_set_new(
				said, RESERVATION_INSTANCES, json_string(ours.instances));
	}
	json_object_set_new(said, "failedNodes", failed_nodes);
	filter_deinit(&ours);
	free(names);
	return said;
}

static json_t *recorded(const json_t *result)
{
	const json_t *annotations = json_object_get(result, "annotations"), *failed_nodes;
	const char *devices = json_string_value(json_object_get(annotations, ASSIGNMENT_ALLOCATED));
	const char *instances =
		json_string_value(json_object_get(annotations, RESERVATION_INSTANCES));
	json_t *said = json_object();

	failed_nodes = json_object_get(result, "failedNodes");
	json_object_set(said, "nodeNames", json_object_get(result, "nodeNames"));
	json_object_set_new(said, "failedNodes",
		failed_nodes ? json_copy((json_t *)failed_nodes) : json_object());
	if (devices)
		json_object_set_new(said, ASSIGNMENT_ALLOCATED, json_string(devices));
	if (instances)
		json_object_set_new(said, RESERVATION_INSTANCES, json_string(instances));
	return said;
}

static bool has_word(const char *words, const char *word)
{
	const char *at = strstr(words, word);
	size_t length = strlen(word);

	return at && (at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ');
}

static const char *reason_of(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(differences); i++)
		if (has_word(differences[i].ids, id))
			return differences[i].reason;
	return NULL;
}

static void judge(const json_t *vector, bool is_same, const json_t *ours, const json_t *theirs)
{
	const char *reason = reason_of(text_of(vector, "id"));
	char *a, *b;

	checked++;
	if (is_same == !reason)
		return;
	failed++;
	a = ours ? json_dumps(ours, JSON_COMPACT) : NULL;
	b = theirs ? json_dumps(theirs, JSON_COMPACT) : NULL;
	printf("%s (%s): %s %s\n    ours   %s\n    theirs %s\n", text_of(vector, "id"),
		text_of(vector, "about"), text_of(vector, "defect"),
		reason ? "is the same after all" : "", a, b);
	free(a);
	free(b);
}

static void ask(const json_t *vector)
{
	struct demand_rules rules = rules_of(json_object_get(vector, "config"));
	const json_t *result = json_object_get(vector, "result");
	json_t *ours = NULL, *theirs = recorded(result);
	struct demand demand = {0};
	struct err err = ERR_NULL;
	struct books *books;
	bool is_same;

	if (books_new(&books))
		abort();
	add_nodes(books, &rules, json_object_get(vector, "nodes"));
	add_quotas(books, &rules, vector);
	if (demand_read(&rules, json_object_get(vector, "pod"), &demand, &err)) {
		is_same = *text_of(result, "error");
	} else if (!demand.asks) {
		is_same = json_equal(
			json_object_get(result, "nodeNames"), json_object_get(vector, "nodeNames"));
	} else {
		ours = answer(books, &demand, vector);
		is_same = json_equal(ours, theirs);
	}
	judge(vector, is_same, ours, theirs);
	demand_deinit(&demand);
	books_free(books);
	json_decref(ours);
	json_decref(theirs);
}

static struct admission_rules admission_rules_of(const json_t *config)
{
	const json_t *changed = json_object_get(config, "nvidia"), *count;
	struct admission_rules rules = {
		.demand = rules_of(config),
		.priority = "nvidia.com/priority",
		.scheduler = "hami-scheduler",
		.takes_default = !has_flag(config, "--force-overwrite-default-scheduler=false"),
		.core_policy = text_of(changed, "gpuCorePolicy"),
		.runtime_class = text_of(changed, "runtimeClassName"),
		.hides_devices = json_is_true(json_object_get(changed, "overwriteEnv")),
	};

	count = json_object_get(changed, "defaultGPUNum");
	rules.default_count = count ? json_integer_value(count) : 1;
	return rules;
}

static int compare_paths(const void *a, const void *b)
{
	const json_t *const *left = a, *const *right = b;

	return strcmp(text_of(*left, "path"), text_of(*right, "path"));
}

/* What our answer and the recorded one have in common: allowed, status, and the patch by path. */
static json_t *admission_said(const json_t *response)
{
	const char *encoded = json_string_value(json_object_get(response, "patch"));
	const json_t *status = json_object_get(response, "status"), *list = NULL, *one;
	json_t *said = json_object(), *sorted = json_array(), *decoded = NULL;
	const json_t *operations[64];
	size_t i, count = 0;
	char *text;

	json_object_set(said, "allowed", json_object_get(response, "allowed"));
	json_object_set_new(said, "message", json_string(text_of(status, "message")));
	if (encoded && !base64_decode(encoded, &text)) {
		list = decoded = json_loads(text, 0, NULL);
		free(text);
	} else {
		list = json_object_get(response, "patch");
	}
	json_array_foreach(list, i, one) if (count < ARRAY_SIZE(operations)) operations[count++] =
		one;
	qsort(operations, count, sizeof(*operations), compare_paths);
	for (i = 0; i < count; i++)
		json_array_append(sorted, (json_t *)operations[i]);
	json_object_set_new(said, "patch", sorted);
	json_decref(decoded);
	return said;
}

static void admit(const json_t *vector)
{
	struct admission_rules rules = admission_rules_of(json_object_get(vector, "config"));
	const json_t *admission = json_object_get(vector, "admission");
	json_t *review, *answer, *ours, *theirs;
	struct err err = ERR_NULL;
	struct books *books;

	if (!admission)
		return; /* it was not asked */
	if (books_new(&books))
		abort();
	theirs = admission_said(json_object_get(vector, "result"));
	add_quotas(books, &rules.demand, vector);
	review = json_pack("{s:s, s:{s:s, s:s, s:O}}", "apiVersion",
		text_of(admission, "apiVersion"), "request", "uid", "u", "operation",
		text_of(admission, "operation"), "object", json_object_get(admission, "object"));
	if (admission_answer(&rules, books, review, &answer, &err))
		abort();
	ours = admission_said(json_object_get(answer, "response"));
	judge(vector, json_equal(ours, theirs), ours, theirs);
	json_decref(review);
	json_decref(answer);
	json_decref(ours);
	json_decref(theirs);
	books_free(books);
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
	char *line = NULL;
	size_t size = 0;

	if (!file) {
		fprintf(stderr, "test_vectors FILE.jsonl\n");
		return 2;
	}
	while (getline(&line, &size, file) > 0) {
		json_t *vector = json_loads(line, 0, NULL);

		if (!strcmp(text_of(vector, "request"), "filter"))
			ask(vector);
		else if (!strcmp(text_of(vector, "request"), "webhook"))
			admit(vector);
		json_decref(vector);
	}
	free(line);
	fclose(file);
	printf("%u recordings, %u failed\n", checked, failed);
	return failed || !checked;
}
