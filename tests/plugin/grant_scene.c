/* SPDX-License-Identifier: Apache-2.0 */
/* A container and its node, for tests of what is granted. */
#include "tests/plugin/grant_scene.h"

#include <string.h>

#include "tests/unit/cmocka_ready.h"

struct inventory grant_scene_inventory = {.count = 2,
	.device = {{.index = 0, .uuid = UUID0, .name = "NVIDIA H200", .total_bytes = 150754820096},
		{.index = 1,
			.minor = 5,
			.uuid = UUID1,
			.name = "NVIDIA H200",
			.total_bytes = 150754820096}}};

const struct grant_paths grant_scene_paths = {.library = "/usr/local/vgpu/libvgpu.so.1",
	.preload = "/usr/local/vgpu/ld.so.preload",
	.region_folder = "/usr/local/vgpu/containers/" UID "_a",
	.share_folder = "/usr/local/vgpu/shares/" UID "_a"};

static char *no_environment(const char *name)
{
	return NULL;
}

struct config *grant_scene_config(const char *text, const char *arguments[])
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

int grant_scene_plan(const struct grant_scene *s, struct grant_made *m, struct err *err)
{
	static char *const chosen[32] = {(char *)"x-0"};
	const struct grant_container container = {.pod_uid = s->pod_uid ? s->pod_uid : UID,
		.name = s->container ? s->container : "a",
		.priority = s->has_priority ? s->priority : GRANT_NOT_GIVEN,
		.disable_control = s->disable_control,
		.covering = s->covering,
		.asked = s->asked};
	struct assignment a = ASSIGNMENT_NULL;
	int result;

	m->config = grant_scene_config(s->config, (const char **)s->arguments);
	if (s->hook)
		m->config->hook_path = s->hook;
	grant_scene_inventory.device[1].is_mig = s->is_mig;
	m->node = (struct grant_node){.config = m->config,
		.inventory = &grant_scene_inventory,
		.unhealthy = s->unhealthy,
		.has_turns = !s->has_no_turns};
	assert_int_equal(assignment_decode(s->assigned, &a, err), 0);
	result = grant_plan(&m->node, &container, &a.slots[0], chosen,
		s->ids ? s->ids : a.slots[0].count, s->unique ? s->unique : UNIQUE, &m->grant, err);
	assignment_deinit(&a);
	return result;
}

V1beta1__ContainerAllocateResponse *grant_scene_answer(
	const struct grant_scene *s, const struct grant_paths *prepared, struct grant_made *m)
{
	V1beta1__ContainerAllocateResponse *answer = NULL;
	struct err err = ERR_NULL;

	if (grant_scene_plan(s, m, &err) ||
		grant_answer(&m->node, &m->grant, prepared, &answer, &err))
		fail_msg("%s", err.text);
	return answer;
}

void grant_made_free(V1beta1__ContainerAllocateResponse *answer, struct grant_made *m)
{
	if (answer)
		v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	config_free(m->config);
}
