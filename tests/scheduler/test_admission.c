/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may change which annotations, reviews that are none, and pods to which several rules apply. What a new pod gets by each
 * of them alone is in test_vectors.c.
 */
#include <stdio.h>
#include <string.h>

#include "scheduler/admission.h"
#include "tests/unit/cmocka_ready.h"

/* In base64: removes "hami.io/vgpu-devices-allocated" and "cantaloupe.io/resize". */
#define LEFT_OUT_PATCH                                                                             \
	"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL21ldGFkYXRhL2Fubm90YXRpb25zL2hhbWkuaW9+MXZncHUtZGV2aWNl" \
	"cy1hbGxvY2F0ZWQifSx7Im9wIjoicmVtb3ZlIiwicGF0aCI6Ii9tZXRhZGF0YS9hbm5vdGF0aW9ucy9jYW50YWxv" \
	"dXBlLmlvfjFyZXNpemUifV0="

static const char *const trusted[] = {"system:serviceaccount:kube-system:scheduler", NULL};

static const struct admission_rules rules = {.demand = {.count = "nvidia.com/gpu",
						     .memory = "nvidia.com/gpumem",
						     .cores = "nvidia.com/gpucores"},
	.scheduler = "vgpu",
	.takes_default = true,
	.hides_devices = true,
	.default_count = 1,
	.trusted = trusted};

/* Whether the answer to this review is yes; takes both. */
static bool is_allowed(json_t *review, struct books *books)
{
	struct err err = ERR_NULL;
	json_t *answer;
	bool is_yes;

	assert_non_null(review);
	assert_int_equal(admission_answer(&rules, books, review, &answer, &err), 0);
	is_yes = json_is_true(json_object_get(json_object_get(answer, "response"), "allowed"));
	json_decref(answer);
	json_decref(review);
	books_free(books);
	return is_yes;
}

static bool is_update_allowed(const char *user, const char *before, const char *after)
{
	json_t *review = json_pack(
		"{s:s, s:{s:s, s:s, s:{s:s}, s:{s:{s:{s:s*, s:s}}}, s:{s:{s:{s:s*, s:s}}}}}",
		"apiVersion", "admission.k8s.io/v1", "request", "uid", "u", "operation", "UPDATE",
		"userInfo", "username", user, "oldObject", "metadata", "annotations",
		"hami.io/vgpu-devices-allocated", before, "a", "1", "object", "metadata",
		"annotations", "hami.io/vgpu-devices-allocated", after, "a", "2");
	struct books *books;

	assert_int_equal(books_new(&books), 0);
	return is_allowed(review, books);
}

static void annotations_are_the_schedulers(void **state)
{
	assert_true(is_update_allowed("eve", NULL, NULL));
	assert_true(is_update_allowed("eve", "x", "x"));
	assert_false(is_update_allowed("eve", NULL, "x"));
	assert_false(is_update_allowed("eve", "x", NULL));
	assert_false(is_update_allowed("eve", "x", "y"));
	assert_true(is_update_allowed(trusted[0], "x", "y"));
}

/* A label of its own keeps the webhook away from it, and not the guard. */
static void a_pod_that_is_left_out_brings_no_annotations(void **state)
{
	json_t *review = json_pack(
		"{s:s, s:{s:s, s:s, s:{s:{s:{s:s}, s:{s:s, s:s, s:s}}, s:{s:s, s:[{s:s}]}}}}",
		"apiVersion", "admission.k8s.io/v1", "request", "uid", "u", "operation", "CREATE",
		"object", "metadata", "labels", "hami.io/webhook", "ignore", "annotations",
		"hami.io/vgpu-devices-allocated", "G0,NVIDIA,1,1:;", "cantaloupe.io/resize", "{}",
		"hami.io/other", "x", "spec", "nodeName", "n1", "containers", "name", "main");
	struct err err = ERR_NULL;
	struct books *books;
	json_t *answer;
	const char *patch;

	assert_non_null(review);
	assert_int_equal(books_new(&books), 0);
	assert_int_equal(admission_guard(&rules, books, review, &answer, &err), 0);
	assert_true(json_is_true(json_object_get(json_object_get(answer, "response"), "allowed")));
	patch = json_string_value(json_object_get(json_object_get(answer, "response"), "patch"));
	assert_string_equal(patch, LEFT_OUT_PATCH);
	json_decref(answer);
	json_decref(review);
	books_free(books);
}

/* Whatever a part is instead of what it should be, there is an answer or an error. */
static void nothing_that_is_sent_is_believed_to_be_well_formed(void **state)
{
	static const char other_version[] =
		"{\"apiVersion\":\"admission.k8s.io/v2\",\"request\":{\"uid\":\"u\"}}";
	static const char no_object[] =
		"{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"u\"}}";
	static const char *const texts[] = {"1", "[]", "{}",
		"{\"apiVersion\":\"admission.k8s.io/v1\"}", no_object, other_version};
	static const char lists[] = "{\"metadata\":{\"annotations\":[]},\"spec\":"
				    "{\"initContainers\":{},\"containers\":[{\"env\":1}]}}";
	static const char names[] =
		"{\"spec\":{\"containers\":[{\"name\":1,\"env\":[1,{}],\"resources\":{\"limits\":1,"
		"\"requests\":{\"nvidia.com/gpu\":{}}}}]}}";
	static const char amounts[] =
		"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":"
		"\"9223372036854775807\",\"nvidia.com/gpumem\":\"2147483647\"}}}]}}";
	static const char *const pods[] = {"{}", "{\"spec\":1}", "{\"spec\":{\"containers\":1}}",
		"{\"spec\":{\"containers\":[1,null,\"x\"]}}",
		"{\"metadata\":1,\"spec\":{\"containers\":[{}]}}", lists, names, amounts};
	struct books *books;
	struct err err;
	json_t *answer;

	assert_int_equal(books_new(&books), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		json_t *review = json_loads(texts[i], JSON_DECODE_ANY, NULL);

		assert_int_equal(admission_answer(&rules, books, review, &answer, &err), -22);
		json_decref(review);
	}
	for (size_t i = 0; i < sizeof(pods) / sizeof(*pods); i++) {
		json_t *review =
			json_pack("{s:s, s:{s:s, s:o}}", "apiVersion", "admission.k8s.io/v1",
				"request", "uid", "u", "object", json_loads(pods[i], 0, NULL));

		assert_non_null(review);
		assert_int_equal(admission_answer(&rules, books, review, &answer, &err), 0);
		json_decref(answer);
		json_decref(review);
	}
	books_free(books);
}

/* Of a namespace that has 1,000 MiB and 20 percent left. */
static bool is_wish_of_allowed(const char *allocated, const char *before, const char *after)
{
	json_t *review =
		json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:{s:{s:s*, s:s*}}}, s:{s:{s:{s:s*, s:s*}},"
			  " s:{s:[{s:s, s:{s:{s:s}}}]}}}}",
			"apiVersion", "admission.k8s.io/v1", "request", "uid", "u", "operation",
			"UPDATE", "namespace", "team", "oldObject", "metadata", "annotations",
			"cantaloupe.io/resize", before, "hami.io/vgpu-devices-allocated", allocated,
			"object", "metadata", "annotations", "cantaloupe.io/resize", after,
			"hami.io/vgpu-devices-allocated", allocated, "spec", "containers", "name",
			"main", "resources", "limits", rules.demand.count, "1");
	struct books *books;

	assert_int_equal(books_new(&books), 0);
	assert_int_equal(books_set_quota(books, "team", "q", &(struct fit_room){1000, 20}), 0);
	return is_allowed(review, books);
}

static bool is_wish_allowed(const char *before, const char *after)
{
	return is_wish_of_allowed("G0,NVIDIA,500,10:;", before, after);
}

static void a_wish_takes_no_more_than_the_quota_leaves(void **state)
{
	assert_true(is_wish_allowed(NULL, "{\"main\": {\"gpumem\": 1500, \"gpucores\": 30}}"));
	assert_true(is_wish_allowed(NULL, "{\"main\": {\"gpumem\": 100}}"));
	assert_false(is_wish_allowed(NULL, "{\"main\": {\"gpumem\": 1501}}"));
	assert_false(is_wish_allowed(NULL, "{\"main\": {\"gpucores\": 31}}"));
	assert_false(is_wish_allowed("{}", "{\"other\": {\"gpumem\": 1}}"));
	assert_false(is_wish_allowed("{}", "x"));
	assert_false(is_wish_of_allowed(NULL, NULL, "{\"main\": {\"gpumem\": 1}}"));
	assert_true(is_wish_of_allowed(NULL, "{}", NULL));
	/* what was so before is not this change's, and one may take it back */
	assert_true(is_wish_allowed("x", "x"));
	assert_true(is_wish_allowed("x", NULL));
}

static void a_pod_alone_is_changed_as_its_review_would(void **state)
{
	json_t *pod = json_pack("{s:{s:s, s:{s:s}}, s:{s:[{s:s, s:{s:{s:s}}}]}}", "metadata",
		"name", "p", "annotations", "hami.io/vgpu-node", "n1", "spec", "containers", "name",
		"c", "resources", "limits", "nvidia.com/gpumem", "1000");
	json_t *before = json_deep_copy(pod), *changed = NULL;
	char denied[ADMISSION_WORDS_BYTES];
	const char *remark;
	struct books *books;

	assert_int_equal(books_new(&books), 0);
	assert_int_equal(
		admission_change(&rules, books, "team", pod, &changed, denied, &remark), 0);
	assert_true(json_equal(pod, before));
	assert_string_equal(denied, "");
	assert_null(remark);
	assert_null(demand_annotation(changed, "hami.io/vgpu-node"));
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(changed, "spec"), "schedulerName")),
		"vgpu");
	assert_true(demand_is_asked(
		json_array_get(json_object_get(json_object_get(changed, "spec"), "containers"), 0),
		"nvidia.com/gpu"));
	json_decref(changed);
	assert_int_equal(
		books_set_quota(books, "team", "q", &(struct fit_room){999, INT64_MAX}), 0);
	assert_int_equal(
		admission_change(&rules, books, "team", pod, &changed, denied, &remark), 0);
	assert_string_equal(denied, "exceeding resource quota");
	json_decref(changed);
	json_decref(before);
	json_decref(pod);
	books_free(books);
}

/* Filter would take the container for one that asks for nothing. */
static void an_amount_that_is_none_is_denied(void **state)
{
	static const char *const amounts[][2] = {{"nvidia.com/gpu", "10E"},
		{"nvidia.com/gpumem", "10E"}, {"nvidia.com/gpumem", "1500m"},
		{"nvidia.com/gpucores", "x"}};
	struct books *books;

	assert_int_equal(books_new(&books), 0);
	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
		json_t *pod = json_pack("{s:{}, s:{s:[{s:s, s:{s:{s:s, s:s}}}]}}", "metadata",
			"spec", "containers", "name", "c", "resources", "limits", "nvidia.com/gpu",
			"1", amounts[i][0], amounts[i][1]);
		char denied[ADMISSION_WORDS_BYTES], words[ADMISSION_WORDS_BYTES];
		const char *remark;
		json_t *changed;

		snprintf(words, sizeof(words), "container c: %s is no amount that there is",
			amounts[i][0]);
		assert_int_equal(
			admission_change(&rules, books, "team", pod, &changed, denied, &remark), 0);
		assert_string_equal(denied, words);
		json_decref(changed);
		json_decref(pod);
	}
	books_free(books);
}

#define BIT(n) (1u << (n))

/* What may be wrong with a pod, in the order in which it is looked at. */
enum trouble { NO_CONTAINERS, OTHERS, PERCENTAGE, PRIVILEGED, HAS_NODE, OVER_QUOTA, TROUBLES };

static const struct {
	const char *words;
	bool is_allowed;
} troubles[TROUBLES] = {
	[NO_CONTAINERS] = {"pod has no containers", false},
	[OTHERS] = {"pod already has different scheduler assigned", true},
	[PERCENTAGE] = {"container c: nvidia.com/gpumem-percentage is not a whole number from 0 to "
			"100",
		false},
	[PRIVILEGED] = {"container c is privileged", false},
	[HAS_NODE] = {"pod has node assigned", false},
	[OVER_QUOTA] = {"exceeding resource quota", false},
};

static const struct admission_rules all_rules = {
	.demand = {.count = "nvidia.com/gpu",
		.memory = "nvidia.com/gpumem",
		.percentage = "nvidia.com/gpumem-percentage",
		.cores = "nvidia.com/gpucores"},
	.priority = "nvidia.com/priority",
	.scheduler = "vgpu",
	.takes_default = true,
	.core_policy = "force",
	.runtime_class = "nvidia",
	.hides_devices = true,
	.default_count = 1};

static json_t *pod_with(unsigned set)
{
	const char *list = set & BIT(NO_CONTAINERS) ? "initContainers" : "containers";

	return json_pack("{s:{s:s}, s:{s:s, s:s*, s:[{s:s, s:{s:b}, s:{s:{s:s, s:s, s:s*}}}]}}",
		"metadata", "name", "p", "spec", "schedulerName",
		set & BIT(OTHERS) ? "volcano" : "default-scheduler", "nodeName",
		set & BIT(HAS_NODE) ? "n1" : NULL, list, "name", "c", "securityContext",
		"privileged", (set & BIT(PRIVILEGED)) != 0, "resources", "limits", "nvidia.com/gpu",
		"1", "nvidia.com/gpumem", "1000", "nvidia.com/gpumem-percentage",
		set & BIT(PERCENTAGE) ? "101" : NULL);
}

/* All sets of troubles: the first of them is what is said. */
static void of_several_rules_the_first_speaks(void **state)
{
	for (unsigned set = 0; set < BIT(TROUBLES); set++) {
		unsigned first = set ? (unsigned)__builtin_ctz(set) : TROUBLES;
		struct fit_room room = {set & BIT(OVER_QUOTA) ? 999 : 1000, INT64_MAX};
		json_t *pod = pod_with(set), *changed = NULL;
		char denied[ADMISSION_WORDS_BYTES];
		const char *remark = NULL, *said;
		struct books *books;

		assert_non_null(pod);
		assert_int_equal(books_new(&books), 0);
		assert_int_equal(books_set_quota(books, "team", "q", &room), 0);
		assert_int_equal(
			admission_change(&all_rules, books, "team", pod, &changed, denied, &remark),
			0);
		said = *denied ? denied : remark ? remark : "";
		if (strcmp(said, first < TROUBLES ? troubles[first].words : "") != 0)
			fail_msg("set %x: '%s'", set, said);
		assert_int_equal(!*denied, first == TROUBLES || troubles[first].is_allowed);
		/* of another scheduler's pod nothing is changed */
		assert_int_equal(json_equal(changed, pod), first <= OTHERS);
		json_decref(changed);
		json_decref(pod);
		books_free(books);
	}
}

static bool is_text(const json_t *value, const char *text)
{
	return text ? value && !strcmp(json_string_value(value), text) : !value;
}

/* The names of a container's variables, each with a space behind it. */
static void list_variables(const json_t *container, char ret_names[256])
{
	const json_t *variable;
	size_t i;

	ret_names[0] = '\0';
	json_array_foreach(json_object_get(container, "env"), i, variable)
	{
		strcat(ret_names, json_string_value(json_object_get(variable, "name")));
		strcat(ret_names, " ");
	}
}

#define PRIORITY "CUDA_TASK_PRIORITY "
#define POLICY	 "GPU_CORE_UTILIZATION_POLICY "
#define HIDDEN	 "NVIDIA_VISIBLE_DEVICES "

/* One container, to which several rules apply: what one has added, the next one sees. */
static void what_a_rule_adds_the_next_one_sees(void **state)
{
	static const struct {
		const char *limits;	   /* of the container */
		const char *count, *cores; /* after it; NULL: there is none */
		const char *variables;	   /* in this order */
	} rows[] = {
		{"{\"nvidia.com/priority\":\"1\"}", NULL, NULL, PRIORITY HIDDEN},
		{"{\"nvidia.com/priority\":\"1\",\"nvidia.com/gpu\":\"2\"}", "2", "100",
			PRIORITY POLICY},
		{"{\"nvidia.com/priority\":\"1\",\"nvidia.com/gpucores\":\"30\"}", "1", "30",
			PRIORITY POLICY},
		{"{\"nvidia.com/gpumem-percentage\":\"100\"}", "1", "100", POLICY},
		{"{\"nvidia.com/gpumem-percentage\":\"50\"}", "1", NULL, POLICY},
		{"{\"nvidia.com/gpumem\":\"1000\",\"nvidia.com/gpumem-percentage\":\"100\"}", "1",
			"100", POLICY},
		{"{\"nvidia.com/gpumem\":\"1000\"}", "1", NULL, POLICY},
		{"{}", NULL, NULL, HIDDEN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *pod = json_pack("{s:{s:s}, s:{s:[{s:s, s:{s:o}}]}}", "metadata", "name",
			"p", "spec", "containers", "name", "c", "resources", "limits",
			json_loads(rows[i].limits, 0, NULL));
		char denied[ADMISSION_WORDS_BYTES], names[256];
		const json_t *spec, *container, *limits;
		const char *remark, *class;
		struct books *books;
		json_t *changed;

		assert_int_equal(books_new(&books), 0);
		assert_int_equal(
			admission_change(&all_rules, books, "team", pod, &changed, denied, &remark),
			0);
		assert_string_equal(denied, "");
		spec = json_object_get(changed, "spec");
		container = json_array_get(json_object_get(spec, "containers"), 0);
		limits = json_object_get(json_object_get(container, "resources"), "limits");
		list_variables(container, names);
		assert_string_equal(names, rows[i].variables);
		assert_true(is_text(json_object_get(limits, "nvidia.com/gpu"), rows[i].count));
		assert_true(is_text(json_object_get(limits, "nvidia.com/gpucores"), rows[i].cores));
		class = json_string_value(json_object_get(spec, "runtimeClassName"));
		assert_int_equal(class && !strcmp(class, "nvidia"), rows[i].count != NULL);
		json_decref(changed);
		json_decref(pod);
		books_free(books);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(annotations_are_the_schedulers),
		cmocka_unit_test(a_pod_that_is_left_out_brings_no_annotations),
		cmocka_unit_test(a_wish_takes_no_more_than_the_quota_leaves),
		cmocka_unit_test(an_amount_that_is_none_is_denied),
		cmocka_unit_test(a_pod_alone_is_changed_as_its_review_would),
		cmocka_unit_test(of_several_rules_the_first_speaks),
		cmocka_unit_test(what_a_rule_adds_the_next_one_sees),
		cmocka_unit_test(nothing_that_is_sent_is_believed_to_be_well_formed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
