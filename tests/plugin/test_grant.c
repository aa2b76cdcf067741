/* SPDX-License-Identifier: Apache-2.0 */
/* What a container is granted, and its share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugin/answer.h"
#include "tests/plugin/grant_scene.h"
#include "tests/unit/cmocka_ready.h"

/* The text of the share; its slice's name is what a record is called. */
static void shares(const struct grant_scene *s, const char *expected)
{
	char text[SHARE_FILE_BYTES], whole[SHARE_FILE_BYTES];
	struct err err = ERR_NULL;
	struct grant_made m;
	size_t length;

	if (grant_scene_plan(s, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(share_format(&m.grant.share, text, sizeof(text), &length), 0);
	snprintf(whole, sizeof(whole),
		"vgpu-share 1\nslice %s\nregion /usr/local/vgpu/" UNIQUE ".cache\n%send\n",
		m.grant.slice, expected);
	assert_string_equal(text, whole);
	assert_memory_equal(m.grant.slice, UID ".", sizeof(UID));
	grant_made_free(NULL, &m);
}

#define TURNS	"turns /run/vgpu-turns\n"
#define MEMORY0 "device " UUID0 " memory 3145728000"

static void the_share_is_what_was_assigned(void **state)
{
	shares(SCENE(.assigned = ONE), TURNS MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = TWO), TURNS MEMORY0 " cores 30 cap 100\ndevice " UUID1
						     " memory 5242880000 cores 50 cap 100\n");
	shares(SCENE(.assigned = UUID0 ",NVIDIA,3000,0:;"), TURNS MEMORY0 "\n");
	shares(SCENE(.assigned = UUID0 ",NVIDIA,3000,100:;"), TURNS MEMORY0 " cores 100\n");
	/* nothing is lent where nobody can say what is free */
	shares(SCENE(.assigned = ONE, .has_no_turns = true), MEMORY0 " cores 30\n");
	shares(SCENE(.assigned = ONE, .config = "nvidia:\n  gpuCorePolicy: force\n"),
		TURNS MEMORY0 " cores 30\n");
	shares(SCENE(.assigned = ONE, .config = "nvidia:\n  gpuCorePolicy: disable\n"),
		TURNS MEMORY0 "\n");
	shares(SCENE(.assigned = ONE, .config = "nvidia:\n  disableCoreLimit: true\n"),
		TURNS MEMORY0 "\n");
	shares(SCENE(.assigned = ONE, .config = "cantaloupe:\n  allowExports: false\n"),
		TURNS "exports none\n" MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = ONE, .config = "cantaloupe:\n  allowImports: true\n"),
		TURNS "imports any\n" MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = ONE, .has_priority = true, .priority = 0),
		"turns /run/vgpu-turns\npriority 0\n" MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = ONE, .has_priority = true, .priority = 99),
		"turns /run/vgpu-turns\npriority 9\n" MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = ONE, .has_priority = true, .priority = -7),
		TURNS MEMORY0 " cores 30 cap 100\n");
}

static void limits_follow_devices_and_not_their_places(void **state)
{
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer = grant_scene_answer(
		SCENE(.assigned = UUID1 ",NVIDIA,5000,50:" UUID0 ",NVIDIA,3000,0:;"),
		&grant_scene_paths, &m);

	assert_string_equal(answer_env(answer, "NVIDIA_VISIBLE_DEVICES"), UUID0 "," UUID1);
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "3000m");
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_MEMORY_LIMIT_1"), "5000m");
	/* a common limit would be one for the device that has none */
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_SM_LIMIT"), "0");
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_SM_LIMIT_0"), "0");
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_SM_LIMIT_1"), "50");
	grant_made_free(answer, &m);
	answer = grant_scene_answer(
		SCENE(.assigned = UUID0 ",NVIDIA,3000,60:" UUID0 ",NVIDIA,3000,60:;"),
		&grant_scene_paths, &m);
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "6000m");
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_SM_LIMIT"), "100");
	assert_null(answer_env(answer, "CUDA_DEVICE_MEMORY_LIMIT_1"));
	grant_made_free(answer, &m);
	answer = grant_scene_answer(
		SCENE(.assigned = UUID0 ",NVIDIA,3000,60:" UUID0 ",NVIDIA,3000,0:;"),
		&grant_scene_paths, &m);
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_SM_LIMIT"), "0");
	grant_made_free(answer, &m);
}

static void refused(const struct grant_scene *s, const char *why)
{
	struct err err = ERR_NULL;
	struct grant_made m;

	if (grant_scene_plan(s, &m, &err) != -EINVAL || !strstr(err.text, why))
		fail_msg("'%s' has no '%s'", err.text, why);
	grant_made_free(NULL, &m);
}

static void what_cannot_have_been_meant_is_refused(void **state)
{
	char many[4096] = "";

	refused(SCENE(.assigned = ONE, .ids = 2), "device number not matched");
	refused(SCENE(.assigned = TWO, .ids = 1), "device number not matched");
	refused(SCENE(.assigned = ";"), "device number not matched");
	refused(SCENE(.assigned = UUID0 ",AMD,3000,30:;"), "of 'AMD', not of NVIDIA");
	refused(SCENE(.assigned = UUID0 ",nvidia,3000,30:;"), "of 'nvidia', not of NVIDIA");
	refused(SCENE(.assigned = "GPU-none,NVIDIA,3000,30:;"), "has no device GPU-none");
	refused(SCENE(.assigned = UUID0 "[1g.10gb-0],NVIDIA,3000,30:;"), "MIG parts only");
	refused(SCENE(.assigned = TWO, .is_mig = true), "MIG parts only");
	refused(SCENE(.assigned = TWO, .unhealthy = 2), UUID1 " is not healthy");
	refused(SCENE(.assigned = UUID0 ",NVIDIA,0,30:;"), "no limit");
	refused(SCENE(.assigned = UUID0 ",NVIDIA,3000,101:;"), "more than all of it");
	refused(SCENE(.assigned = ONE, .pod_uid = "../../etc"), "no UID");
	refused(SCENE(.assigned = ONE, .pod_uid = ""), "no UID");
	refused(SCENE(.assigned = ONE,
			.pod_uid = UID "-which-is-longer-than-any-uid-of-a-pod-can-be"),
		"no UID");
	refused(SCENE(.assigned = ONE, .container = "a/../b"), "no name of a container");
	refused(SCENE(.assigned = ONE, .container = ""), "no name of a container");
	refused(SCENE(.assigned = ONE, .covering = "/etc/vgpu"), "of its own at /etc/vgpu, where");
	refused(SCENE(.assigned = ONE, .unique = "../a"), "region's name");
	refused(SCENE(.assigned = ONE, .hook = "/usr/my folder"), "HOOK_PATH");
	memset(many, 'a', 300);
	refused(SCENE(.assigned = ONE, .hook = many), "HOOK_PATH");
}

static void never_more_is_granted_than_asked_for(void **state)
{
	static const struct grant_asked exact = {3000, -1, 30}, part = {-1, 50, -1},
					nothing = {-1, -1, -1}, no_cores = {3000, -1, 0};
	struct grant_made m;
	struct err err = ERR_NULL;

	/* the card has 143,771 MiB */
	static const struct {
		const struct grant_asked *asked;
		const char *config, *assigned, *why;
	} cases[] = {
		{&exact, NULL, UUID0 ",NVIDIA,3000,30:;", NULL},
		{&exact, NULL, UUID0 ",NVIDIA,2000,20:;", NULL},
		{&exact, NULL, UUID0 ",NVIDIA,3001,30:;", "3001 MiB of device"},
		{&exact, NULL, UUID0 ",NVIDIA,3000,31:;", "31 percent of device"},
		{&exact, NULL, UUID0 ",NVIDIA,3000,0:;", "0: no limit"},
		{&exact, "nvidia:\n  memoryFactor: 2\n", UUID0 ",NVIDIA,6000,30:;", NULL},
		{&exact, "cantaloupe:\n  trustAssignments: true\n", UUID0 ",NVIDIA,9000,0:;", NULL},
		{&no_cores, NULL, UUID0 ",NVIDIA,3000,0:;", NULL},
		{&part, NULL, UUID0 ",NVIDIA,71885,0:;", NULL},
		{&part, NULL, UUID0 ",NVIDIA,71886,0:;", "asks for 71885"},
		{&part, "nvidia:\n  deviceMemoryScaling: 2\n", UUID0 ",NVIDIA,143771,0:;", NULL},
		{&nothing, NULL, UUID0 ",NVIDIA,143771,100:;", NULL},
		{&nothing, NULL, UUID0 ",NVIDIA,143772,100:;", "asks for 143771"},
		{&nothing, "nvidia:\n  defaultMemory: 500\n  defaultCores: 10\n",
			UUID0 ",NVIDIA,500,10:;", NULL},
		{&nothing, "nvidia:\n  defaultMemory: 500\n  defaultCores: 10\n",
			UUID0 ",NVIDIA,501,10:;", "asks for 500"},
		{&nothing, "nvidia:\n  defaultCores: 10\n", UUID0 ",NVIDIA,500,0:;", "asks for 10"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct grant_scene *s = SCENE(.assigned = cases[i].assigned,
			.asked = cases[i].asked, .config = cases[i].config);

		if (cases[i].why) {
			refused(s, cases[i].why);
			continue;
		}
		if (grant_scene_plan(s, &m, &err))
			fail_msg("%zu: %s", i, err.text);
		config_free(m.config);
	}
}

static void the_filtered_are_refused(void **state)
{
	struct grant_made m;
	struct err err = ERR_NULL;
	int64_t index = 1;

	assert_int_equal(grant_scene_plan(SCENE(.assigned = ONE), &m, &err), 0);
	m.config->filtered.indexes = malloc(sizeof(index));
	*m.config->filtered.indexes = 0;
	m.config->filtered.index_count = 1;
	{
		const struct grant_container container = {
			.pod_uid = UID, .name = "a", .priority = GRANT_NOT_GIVEN};
		struct assignment a = ASSIGNMENT_NULL;
		char *ids[] = {(char *)"x-0"};

		assert_int_equal(assignment_decode(ONE, &a, &err), 0);
		assert_int_equal(grant_plan(&m.node, &container, &a.slots[0], ids, 1, UNIQUE,
					 &m.grant, &err),
			-EINVAL);
		assert_non_null(strstr(err.text, "filterdevices"));
		assignment_deinit(&a);
	}
	grant_made_free(NULL, &m);
}

static void slices_of_a_pod_have_names_of_their_own(void **state)
{
	struct grant_made a, b;
	struct err err = ERR_NULL;

	assert_int_equal(grant_scene_plan(SCENE(.assigned = ONE), &a, &err), 0);
	assert_int_equal(grant_scene_plan(SCENE(.assigned = ONE, .container = "b"), &b, &err), 0);
	assert_string_not_equal(a.grant.slice, b.grant.slice);
	grant_made_free(NULL, &a);
	grant_made_free(NULL, &b);
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
		cmocka_unit_test(the_share_is_what_was_assigned),
		cmocka_unit_test(limits_follow_devices_and_not_their_places),
		cmocka_unit_test(what_cannot_have_been_meant_is_refused),
		cmocka_unit_test(never_more_is_granted_than_asked_for),
		cmocka_unit_test(the_filtered_are_refused),
		cmocka_unit_test(slices_of_a_pod_have_names_of_their_own),
		cmocka_unit_test(the_device_of_an_id_is_before_its_number),
		cmocka_unit_test(each_draw_is_another_uuid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
