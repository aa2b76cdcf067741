/* SPDX-License-Identifier: Apache-2.0 */
/* Any JSON as an admission review: it is refused with a sentence, or answered with its uid, and a patch that is one. */
#include <errno.h>
#include <string.h>

#include "kube/base64.h"
#include "scheduler/admission.h"
#include "tests/fuzz/fuzz.h"

static const char *const trusted[] = {"system:serviceaccount:kube-system:scheduler", NULL};

static const struct admission_rules rules = {
	.demand = {.count = "nvidia.com/gpu",
		.memory = "nvidia.com/gpumem",
		.percentage = "nvidia.com/gpumem-percentage",
		.cores = "nvidia.com/gpucores",
		.node_policy = "binpack",
		.device_policy = "spread"},
	.priority = "nvidia.com/priority",
	.scheduler = "hami-scheduler",
	.takes_default = true,
	.default_count = 1,
	.core_policy = "force",
	.runtime_class = "nvidia",
	.hides_devices = true,
	.trusted = trusted,
};

static void check_response(const json_t *response)
{
	const char *encoded = json_string_value(json_object_get(response, "patch"));
	json_t *patch;
	char *text;

	FUZZ_CHECK(json_is_boolean(json_object_get(response, "allowed")));
	if (!encoded)
		return;
	FUZZ_CHECK(json_is_true(json_object_get(response, "allowed")));
	FUZZ_CHECK(!base64_decode(encoded, &text));
	patch = json_loads(text, 0, NULL);
	FUZZ_CHECK(json_is_array(patch));
	json_decref(patch);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	json_t *review = json_loadb((const char *)bytes, size, 0, NULL), *answer;
	struct err err = ERR_NULL;
	struct books *books;
	int result;

	if (!review)
		return 0;
	FUZZ_CHECK(!books_new(&books));
	result = admission_answer(&rules, books, review, &answer, &err);
	FUZZ_CHECK(!result || (result == -EINVAL && err.text[0]));
	if (!result) {
		check_response(json_object_get(answer, "response"));
		json_decref(answer);
	}
	books_free(books);
	json_decref(review);
	return 0;
}
