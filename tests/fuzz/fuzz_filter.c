/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any JSON as nodes, pods on them, quotas and a pod (tests/scheduler/case.h): registers, cordons, scores, assignments, instances,
 * quantities and wishes. What is promised can be read again, and the books take it.
 */
#include <errno.h>
#include <string.h>

#include "kube/assignment.h"
#include "scheduler/filter.h"
#include "scheduler/reservation.h"
#include "tests/fuzz/fuzz.h"
#include "tests/scheduler/case.h"

static void check_answer(const struct filter_answer *answer)
{
	struct assignment assignment = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;

	for (size_t i = 0; i < answer->name_count; i++)
		FUZZ_CHECK(answer->reasons[i] || answer->chosen != FILTER_NONE);
	if (answer->chosen == FILTER_NONE)
		return;
	FUZZ_CHECK(!answer->reasons[answer->chosen]);
	FUZZ_CHECK(!assignment_decode(answer->devices, &assignment, &err));
	assignment_deinit(&assignment);
}

static void decide(struct books *books, const struct demand *demand, const json_t *list)
{
	const char *names[16];
	struct filter_request request = {demand, names, 0};
	struct filter_answer answer;
	const json_t *name;
	size_t i;
	int result;

	json_array_foreach(list, i, name) if (json_is_string(name) && request.name_count < 16)
		names[request.name_count++] = json_string_value(name);
	result = filter(books, &request, &answer);
	FUZZ_CHECK(!result || result == -EINVAL);
	if (result)
		return;
	check_answer(&answer);
	filter_deinit(&answer);
}

/* What the case's own helpers take for granted: the frame, not what is in it. */
static bool is_case(const json_t *one)
{
	const json_t *nodes = json_object_get(one, "nodes"), *node, *pod, *flag;
	size_t i, k;

	json_array_foreach(json_object_get(json_object_get(one, "config"), "flags"), i,
		flag) if (!json_is_string(flag)) return false;
	json_array_foreach(nodes, i, node)
	{
		if (!json_is_string(json_object_get(node, "name")))
			return false;
		json_array_foreach(json_object_get(node, "pods"), k,
			pod) if (!json_is_object(json_object_get(pod, "metadata"))) return false;
	}
	return json_is_array(nodes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	json_t *one = json_loadb((const char *)bytes, size, 0, NULL);
	struct demand_rules rules = case_rules(json_object_get(one, "config"));
	struct demand demand = {0};
	struct err err = ERR_NULL;
	struct books *books;

	if (!is_case(one)) {
		json_decref(one);
		return 0;
	}
	FUZZ_CHECK(!books_new(&books));
	case_add_nodes(books, &rules, json_object_get(one, "nodes"));
	case_add_quotas(books, &rules, one);
	if (demand_read(&rules, json_object_get(one, "pod"), &demand, &err))
		FUZZ_CHECK(err.text[0]);
	else if (demand.asks)
		decide(books, &demand, json_object_get(one, "nodeNames"));
	demand_deinit(&demand);
	books_free(books);
	json_decref(one);
	return 0;
}
