/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of `vgpu plan`, YAML or JSON. What is accepted can be planned, and what is not has a reason that names
 * the file.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "plan/decide.h"
#include "plan/reader.h"
#include "tests/fuzz/fuzz.h"

#define PODS_MOST 8 /* of one input are decided */

static void ignore(const char *words)
{
}

static void plan(struct world *world)
{
	const struct decide_request request = {true, true};
	size_t count = world->pod_count < PODS_MOST ? world->pod_count : PODS_MOST;

	world_sort(world);
	for (size_t i = 0; i < count; i++) {
		struct world_pod *pod = &world->pods[i];
		enum decide_outcome outcome;
		json_t *answer = NULL;

		if (pod->state != WORLD_WAITS)
			continue;
		FUZZ_CHECK(!decide(world, pod, &request, &outcome, &answer) && answer);
		FUZZ_CHECK(json_string_value(json_object_get(answer, "state")));
		FUZZ_CHECK((outcome == DECIDE_PLACED) == !!json_object_get(answer, "node"));
		json_decref(answer);
	}
}

static void add(const struct settings *settings, const struct reader_list *list)
{
	struct err err = ERR_NULL;
	struct world world;
	int r;

	FUZZ_CHECK(!world_init(&world, settings, "default", 1000000000, ignore));
	r = world_add(&world, list, false, &err);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && !strncmp(err.text, "file", 4)));
	if (r == 0 && world.node_count)
		r = world_drain(&world, world.nodes[0].name, &err);
	FUZZ_CHECK(r == 0 || r == -EINVAL);
	plan(&world);
	world_deinit(&world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct settings settings;
	static char program[] = "fuzz";
	struct reader_list list = READER_LIST_NULL;
	struct err err = ERR_NULL;
	int r;

	log_set_level(LOG_OFF);
	if (!settings.node_policy)
		FUZZ_CHECK(!settings_read(1, (char *[]){program, NULL}, &settings, &err));
	r = reader_read_text("file", (const char *)bytes, size, &list, &err);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && !strncmp(err.text, "file", 4)));
	for (size_t i = 0; i < list.count; i++)
		FUZZ_CHECK(json_is_object(list.at[i].object) && list.at[i].document);
	if (r == 0)
		add(&settings, &list);
	reader_deinit(&list);
	return 0;
}
