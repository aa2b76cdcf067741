/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change which annotations, and reviews that are none. What a new pod gets is in test_vectors.c. */
#include <string.h>

#include "scheduler/admission.h"
#include "tests/unit/cmocka_ready.h"

static const char *const trusted[] = {"system:serviceaccount:kube-system:scheduler", NULL};

static const struct admission_rules rules = {.demand = {.count = "nvidia.com/gpu",
						     .memory = "nvidia.com/gpumem",
						     .cores = "nvidia.com/gpucores"},
	.scheduler = "vgpu",
	.takes_default = true,
	.hides_devices = true,
	.default_count = 1,
	.trusted = trusted};

static bool is_update_allowed(const char *user, const char *before, const char *after)
{
	json_t *review = json_pack(
		"{s:s, s:{s:s, s:s, s:{s:s}, s:{s:{s:{s:s*, s:s}}}, s:{s:{s:{s:s*, s:s}}}}}",
		"apiVersion", "admission.k8s.io/v1", "request", "uid", "u", "operation", "UPDATE",
		"userInfo", "username", user, "oldObject", "metadata", "annotations",
		"hami.io/vgpu-devices-allocated", before, "a", "1", "object", "metadata",
		"annotations", "hami.io/vgpu-devices-allocated", after, "a", "2");
	struct err err = ERR_NULL;
	struct books *books;
	json_t *answer;
	bool is_allowed;

	assert_non_null(review);
	assert_int_equal(books_new(&books), 0);
	assert_int_equal(admission_answer(&rules, books, review, &answer, &err), 0);
	is_allowed = json_is_true(json_object_get(json_object_get(answer, "response"), "allowed"));
	json_decref(answer);
	json_decref(review);
	books_free(books);
	return is_allowed;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(annotations_are_the_schedulers),
		cmocka_unit_test(a_pod_alone_is_changed_as_its_review_would),
		cmocka_unit_test(nothing_that_is_sent_is_believed_to_be_well_formed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
