/* SPDX-License-Identifier: Apache-2.0 */
/* What Filter decides of the cases on standard input, one of JSON a line, for differential.py. */
#include <stdio.h>
#include <stdlib.h>

#include "scheduler/filter.h"
#include "tests/scheduler/case.h"

static json_t *failed_of(const struct filter_answer *ours, const char *const *names)
{
	json_t *failed = json_object();

	for (size_t i = 0; i < ours->name_count; i++) {
		char words[FILTER_WORDS_BYTES];

		filter_explain(ours->reasons[i], words);
		json_object_set_new(failed, names[i], json_string(words));
	}
	return json_pack("{s:o}", "failed", failed);
}

static json_t *chosen_of(const struct filter_answer *ours, const char *const *names)
{
	json_t *scores = json_object();

	for (size_t i = 0; i < ours->name_count; i++)
		if (!ours->reasons[i])
			json_object_set_new(scores, names[i], json_real(ours->scores[i]));
	return json_pack("{s:s, s:s, s:o, s:o}", "node", names[ours->chosen], "devices",
		ours->devices, "instances",
		ours->instances ? json_loads(ours->instances, 0, NULL) : json_array(), "scores",
		scores);
}

static json_t *choose(struct books *books, const struct demand *demand, const json_t *list)
{
	const char **names = calloc(json_array_size(list) + 1, sizeof(*names));
	struct filter_request request = {demand, names, json_array_size(list)};
	struct filter_answer ours;
	json_t *answer;

	if (!names)
		abort();
	for (size_t i = 0; i < request.name_count; i++)
		names[i] = json_string_value(json_array_get(list, i));
	if (filter(books, &request, &ours))
		abort();
	answer = ours.chosen == FILTER_NONE ? failed_of(&ours, names) : chosen_of(&ours, names);
	filter_deinit(&ours);
	free(names);
	return answer;
}

static json_t *decide(json_t *vector)
{
	struct demand_rules rules = case_rules(json_object_get(vector, "config"));
	struct demand demand = {0};
	struct err err = ERR_NULL;
	struct books *books;
	json_t *answer;

	if (books_new(&books))
		abort();
	case_add_nodes(books, &rules, json_object_get(vector, "nodes"));
	case_add_quotas(books, &rules, vector);
	if (demand_read(&rules, json_object_get(vector, "pod"), &demand, &err))
		answer = json_pack("{s:b}", "error", 1);
	else if (!demand.asks)
		answer = json_pack("{s:b}", "asks", 0);
	else
		answer = choose(books, &demand, json_object_get(vector, "nodeNames"));
	demand_deinit(&demand);
	books_free(books);
	return answer;
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		json_t *vector = json_loads(line, 0, NULL), *answer;

		if (!vector)
			return 2;
		answer = decide(vector);
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
		fflush(stdout);
		json_decref(answer);
		json_decref(vector);
	}
	free(line);
	return 0;
}
