/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HAMi v2.10.0 answered to recorded questions (vectors/README.md), asked of our scheduler. Each difference stands in
 * differences.def with its reason, and in answers.jsonl with the answer that is right instead. Any other answer is a failure, and
 * so is a difference that is none. What needs the program, and not its decisions alone, is asked by replay.py.
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
#include "scheduler/admission.h"
#include "scheduler/filter.h"
#include "scheduler/reservation.h"
#include "tests/scheduler/case.h"

static const struct {
	const char *ids, *reason;
} differences[] = {
#define DIFFERENCE(ids, reason) {(ids), (reason)},
#include "tests/scheduler/differences.def"
};

static unsigned checked, failed;

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
		for (i = 0; i < request.name_count; i++) {
			char words[FILTER_WORDS_BYTES];

			filter_explain(ours.reasons[i], words);
			json_object_set_new(failed_nodes, names[i], json_string(words));
		}
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

/* What answers.jsonl has of each recording, by its id. */
static json_t *answers;

static json_t *read_answers(const char *path)
{
	FILE *file = fopen(path, "r");
	json_t *found = json_object();
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		json_t *answer = json_loads(line, 0, NULL);

		json_object_set_new(found, case_text(answer, "id"), answer);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* The result that is right: the recorded one, or ours where it is said to differ. */
static const json_t *right_result(const json_t *vector)
{
	const char *id = case_text(vector, "id");
	const json_t *result = json_object_get(vector, "result");

	return reason_of(id) ? json_object_get(json_object_get(answers, id), "result") : result;
}

static void judge(const json_t *vector, bool is_right, const json_t *ours, const json_t *right,
	const json_t *theirs)
{
	bool is_same = json_equal(right, theirs), differs = reason_of(case_text(vector, "id"));
	char *a, *b;

	checked++;
	if (is_right && is_same == !differs)
		return;
	failed++;
	a = ours ? json_dumps(ours, JSON_COMPACT) : NULL;
	b = right ? json_dumps(right, JSON_COMPACT) : NULL;
	printf("%s (%s): %s %s\n    ours  %s\n    right %s\n", case_text(vector, "id"),
		case_text(vector, "about"), case_text(vector, "defect"),
		is_same && differs ? "is said to differ, and does not" : "", a, b);
	free(a);
	free(b);
}

static void ask(const json_t *vector)
{
	struct demand_rules rules = case_rules(json_object_get(vector, "config"));
	const json_t *result = right_result(vector);
	json_t *ours = NULL, *right = recorded(result),
	       *theirs = recorded(json_object_get(vector, "result"));
	struct demand demand = {0};
	struct err err = ERR_NULL;
	struct books *books;
	bool is_right;

	if (books_new(&books))
		abort();
	case_add_nodes(books, &rules, json_object_get(vector, "nodes"));
	case_add_quotas(books, &rules, vector);
	if (demand_read(&rules, json_object_get(vector, "pod"), &demand, &err)) {
		is_right = *case_text(result, "error");
	} else if (!demand.asks) {
		is_right = json_equal(
			json_object_get(result, "nodeNames"), json_object_get(vector, "nodeNames"));
	} else {
		ours = answer(books, &demand, vector);
		is_right = json_equal(ours, right);
	}
	judge(vector, is_right, ours, right, theirs);
	demand_deinit(&demand);
	books_free(books);
	json_decref(ours);
	json_decref(right);
	json_decref(theirs);
}

static struct admission_rules admission_rules_of(const json_t *config)
{
	const json_t *changed = json_object_get(config, "nvidia"), *count;
	struct admission_rules rules = {
		.demand = case_rules(config),
		.priority = "nvidia.com/priority",
		.scheduler = "hami-scheduler",
		.takes_default =
			!case_has_flag(config, "--force-overwrite-default-scheduler=false"),
		.core_policy = case_text(changed, "gpuCorePolicy"),
		.runtime_class = case_text(changed, "runtimeClassName"),
		.hides_devices = json_is_true(json_object_get(changed, "overwriteEnv")),
	};

	count = json_object_get(changed, "defaultGPUNum");
	rules.default_count = count ? json_integer_value(count) : 1;
	return rules;
}

static int compare_paths(const void *a, const void *b)
{
	const json_t *const *left = a, *const *right = b;

	return strcmp(case_text(*left, "path"), case_text(*right, "path"));
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
	json_object_set_new(said, "message", json_string(case_text(status, "message")));
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
	json_t *review, *answer, *ours, *right, *theirs;
	struct err err = ERR_NULL;
	struct books *books;

	if (!admission)
		return; /* it was not asked */
	if (books_new(&books))
		abort();
	theirs = admission_said(json_object_get(vector, "result"));
	right = admission_said(right_result(vector));
	case_add_quotas(books, &rules.demand, vector);
	review = json_pack("{s:s, s:{s:s, s:s, s:O}}", "apiVersion",
		case_text(admission, "apiVersion"), "request", "uid", "u", "operation",
		case_text(admission, "operation"), "object", json_object_get(admission, "object"));
	if (admission_answer(&rules, books, review, &answer, &err))
		abort();
	ours = admission_said(json_object_get(answer, "response"));
	judge(vector, json_equal(ours, right), ours, right, theirs);
	json_decref(review);
	json_decref(answer);
	json_decref(ours);
	json_decref(right);
	json_decref(theirs);
	books_free(books);
}

int main(int argc, char **argv)
{
	FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
	char *line = NULL;
	size_t size = 0;

	if (!file) {
		fprintf(stderr, "test_vectors VECTORS ANSWERS\n");
		return 2;
	}
	answers = read_answers(argv[2]);
	while (getline(&line, &size, file) > 0) {
		json_t *vector = json_loads(line, 0, NULL);

		if (!strcmp(case_text(vector, "request"), "filter"))
			ask(vector);
		else if (!strcmp(case_text(vector, "request"), "webhook"))
			admit(vector);
		json_decref(vector);
	}
	free(line);
	fclose(file);
	json_decref(answers);
	printf("%u recordings, %u failed\n", checked, failed);
	return failed || !checked;
}
