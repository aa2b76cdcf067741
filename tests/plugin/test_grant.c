/* SPDX-License-Identifier: Apache-2.0 */
/* What a container is granted, and the answer that the kubelet gets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/grant.h"
#include "tests/unit/cmocka_ready.h"

#define UUID0  "GPU-c694b1ba-0000-4000-8000-000000000000"
#define UUID1  "GPU-1f0ead19-0000-4000-8000-000000000001"
#define UID    "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c11"
#define UNIQUE "6ead0f30-affc-4ab6-937a-e6cb37978d76"

static struct inventory inventory = {.count = 2,
	.device = {{.index = 0, .uuid = UUID0, .name = "NVIDIA H200", .total_bytes = 150754820096},
		{.index = 1, .uuid = UUID1, .name = "NVIDIA H200", .total_bytes = 150754820096}}};

static const struct grant_paths paths = {.library = "/usr/local/vgpu/libvgpu.so.1",
	.preload = "/usr/local/vgpu/ld.so.preload",
	.region_folder = "/usr/local/vgpu/containers/" UID "_a",
	.share_folder = "/usr/local/vgpu/shares/" UID "_a"};

static char *no_environment(const char *name)
{
	return NULL;
}

static struct config *config_of(const char *text, const char *arguments[])
{
	char *argv[16] = {(char *)"vgpu-device-plugin"};
	struct config_files files = {text, NULL, text ? strlen(text) : 0, 0};
	struct config *config = NULL;
	struct err err = ERR_NULL;
	struct flags flags;
	int argc = 1;

	while (arguments && arguments[argc - 1]) {
		argv[argc] = (char *)arguments[argc - 1];
		argc++;
	}
	if (flags_read(argc, argv, no_environment, &flags, &err))
		fail_msg("%s", err.text);
	flags.text[FLAG_hook_path] = "/usr/local";
	if (config_read(&flags, &files, &config, &err))
		fail_msg("%s", err.text);
	return config;
}

/* The grant of an assignment of one slot; the error's text where it is refused. */
static int plan(const struct config *config, const char *assigned, size_t ids,
	struct grant *ret_grant, struct err *err)
{
	const struct grant_node node = {
		.config = config, .inventory = &inventory, .has_turns = true};
	const struct grant_container container = {.pod_uid = UID, .name = "a", .priority = -1};
	static char *const chosen[] = {(char *)"x-0", (char *)"x-1", (char *)"x-2"};
	struct assignment a = ASSIGNMENT_NULL;
	int result = assignment_decode(assigned, &a, err);

	if (!result)
		result = grant_plan(
			&node, &container, &a.slots[0], chosen, ids, UNIQUE, ret_grant, err);
	assignment_deinit(&a);
	return result;
}

static const char *env_of(const V1beta1__ContainerAllocateResponse *answer, const char *name)
{
	for (size_t i = 0; i < answer->n_envs; i++)
		if (!strcmp(answer->envs[i]->key, name))
			return answer->envs[i]->value;
	return NULL;
}

static void one_device_is_granted_as_it_was_assigned(void **state)
{
	struct config *config = config_of(NULL, NULL);
	const struct grant_node node = {.config = config, .inventory = &inventory};
	V1beta1__ContainerAllocateResponse *answer;
	struct err err = ERR_NULL;
	struct grant grant;

	if (plan(config, UUID0 ",NVIDIA,3000,30:;", 1, &grant, &err) ||
		grant_answer(&node, &grant, &paths, &answer, &err))
		fail_msg("%s", err.text);
	assert_string_equal(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "3000m");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT"), "30");
	assert_string_equal(env_of(answer, "NVIDIA_VISIBLE_DEVICES"), UUID0);
	assert_int_equal(answer->n_mounts, 5);
	v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	config_free(config);
}

static void the_device_of_an_id_is_before_its_number(void **state)
{
	static const struct {
		const char *id;
		size_t length;
	} ids[] = {{UUID0 "-0", sizeof(UUID0) - 1}, {UUID0 "-12", sizeof(UUID0) - 1},
		{UUID0 "::3", sizeof(UUID0) - 1}, {UUID0, sizeof(UUID0) - 1},
		{UUID0 "-x", sizeof(UUID0) + 1}, {UUID0 "-", sizeof(UUID0)}, {"", 0}, {"a-0", 3}};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_int_equal(grant_id_device(ids[i].id), ids[i].length);
}

static void each_draw_is_another_uuid(void **state)
{
	char a[GRANT_UNIQUE_BYTES], b[GRANT_UNIQUE_BYTES];

	grant_draw_unique(a);
	grant_draw_unique(b);
	assert_int_equal(strlen(a), 36);
	assert_string_not_equal(a, b);
	assert_int_equal(a[14], '4');
	assert_true(strchr("89ab", a[19]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_device_is_granted_as_it_was_assigned),
		cmocka_unit_test(the_device_of_an_id_is_before_its_number),
		cmocka_unit_test(each_draw_is_another_uuid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
