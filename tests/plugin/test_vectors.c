/* SPDX-License-Identifier: Apache-2.0 */
/* What HAMi's plugin answered to each recorded input, and what our parts answer. The first argument is the file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plugin/grant/cover.h"
#include "plugin/grant/grant.h"
#include "tests/plugin/differences.h"
#include "tests/plugin/vectors.h"
#include "tests/unit/cmocka_ready.h"

static const char *path;
static struct vectors vectors;

/* One container's request: what of the pod bears on it. */
struct container {
	const json_t *spec;
	struct assignment_need need;
};

static size_t read_containers(const json_t *pod, const char *resource, struct container *ret_list)
{
	static const char *const lists[] = {"initContainers", "containers"};
	const json_t *spec = json_object_get(pod, "spec");
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const json_t *list = json_object_get(spec, lists[i]);

		for (size_t k = 0; k < json_array_size(list); k++) {
			struct container *c = &ret_list[count++];
			const char *text;

			c->spec = json_array_get(list, k);
			text = vector_text(
				json_object_get(json_object_get(c->spec, "resources"), "limits"),
				resource);
			c->need = (struct assignment_need){text ? atoi(text) : 0, i == 0};
		}
	}
	return count;
}

static const char *variable_of(const json_t *spec, const char *name)
{
	const json_t *list = json_object_get(spec, "env"), *entry;
	size_t i;

	json_array_foreach((json_t *)list, i,
		entry) if (!strcmp(vector_text(entry, "name"), name)) return vector_text(entry,
		"value");
	return NULL;
}

struct prepared {
	char library[256], preload[256], region[256], share[256];
	struct grant_paths paths;
};

/* As another part of the plugin makes it ready. */
static void prepare(const json_t *vector, const struct config *config, const struct grant *grant,
	struct prepared *ret_prepared)
{
	bool has_license = !strcmp(vector_text(vector, "id"), "cfg-license");
	bool has_library = strcmp(vector_text(vector, "id"), "cfg-nolib") != 0;
	struct prepared *p = ret_prepared;

	snprintf(p->library, sizeof(p->library), "%s/vgpu/libvgpu.so", config->hook_path);
	snprintf(p->preload, sizeof(p->preload), "%s/vgpu/ld.so.preload", config->hook_path);
	snprintf(p->region, sizeof(p->region), "%.100s/vgpu/containers/%.120s", config->hook_path,
		grant->folder);
	snprintf(p->share, sizeof(p->share), "%.100s/vgpu/shares/%.120s", config->hook_path,
		grant->folder);
	p->paths = (struct grant_paths){.library = has_library ? p->library : NULL,
		.preload = p->preload,
		.region_folder = p->region,
		.share_folder = p->share,
		.turns_folder = "/dev/shm/vgpu-turns",
		.license = has_license ? "/usr/local/vgpu/license" : NULL,
		.validator = has_license ? "/usr/local/vgpu/vgpuvalidator" : NULL};
}

/* A pod that is being served. */
struct serving {
	const json_t *vector;
	struct grant_node node;
	struct inventory inventory;
	struct container containers[8];
	size_t container_count, container_of[ASSIGNMENT_CONTAINERS_MAX];
	struct assignment pending;
};

static int begin(struct serving *s, struct err *err)
{
	const json_t *pod = json_object_get(s->vector, "pod");
	const json_t *annotations =
		json_object_get(json_object_get(pod, "metadata"), "annotations");
	const char *pending = vector_text(annotations, ASSIGNMENT_TO_ALLOCATE);
	const char *written = vector_text(annotations, ASSIGNMENT_ALLOCATED);
	struct assignment record = ASSIGNMENT_NULL;
	struct assignment_need needs[8];
	int result;

	s->container_count = read_containers(pod, s->node.config->resource_count, s->containers);
	for (size_t i = 0; i < s->container_count; i++)
		needs[i] = s->containers[i].need;
	if (!pending || !written)
		return err_set(err, EINVAL, "device request not found");
	result = assignment_decode(pending, &s->pending, err);
	if (!result)
		result = assignment_decode(written, &record, err);
	if (!result)
		result = assignment_match(&record, needs, s->container_count, s->container_of, err);
	assignment_deinit(&record);
	return result;
}

static int serve(struct serving *s, const json_t *request,
	V1beta1__ContainerAllocateResponse **ret_answer, struct err *err)
{
	const json_t *list = json_object_get(
		json_array_get(json_object_get(request, "container_requests"), 0), "devices_ids");
	const struct container *container;
	struct prepared prepared;
	struct grant_container facts;
	_cleanup_free_ char *covering = NULL;
	char *ids[16];
	struct grant grant;
	size_t slot;
	int result;

	for (size_t i = 0; i < json_array_size(list); i++)
		ids[i] = (char *)json_string_value(json_array_get(list, i));
	if (!assignment_next(&s->pending, &slot))
		return err_set(err, EINVAL, "no pending device allocation found");
	container = &s->containers[s->container_of[slot]];
	assert_int_equal(cover_find(container->spec, s->node.config->hook_path, &covering), 0);
	facts = (struct grant_container){.pod_uid = VECTOR_UID,
		.name = vector_text(container->spec, "name"),
		.priority = GRANT_NOT_GIVEN,
		.disable_control = variable_of(container->spec, "CUDA_DISABLE_CONTROL"),
		.covering = covering};
	result = grant_plan(&s->node, &facts, &s->pending.slots[slot], ids, json_array_size(list),
		VECTOR_UNIQUE, &grant, err);
	if (result)
		return result;
	prepare(s->vector, s->node.config, &grant, &prepared);
	result = grant_answer(&s->node, &grant, &prepared.paths, ret_answer, err);
	if (!result)
		assignment_consume(&s->pending, slot);
	return result;
}

/* What is left to serve is the same; theirs lengthens the text by a semicolon each time. */
static void compare_rest(const char *id, const struct serving *s)
{
	const json_t *after = json_object_get(s->vector, "pod_annotations_after");
	const char *text = vector_text(after, ASSIGNMENT_TO_ALLOCATE);
	struct assignment theirs = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;
	size_t slot, other;

	if (!text || !s->pending.count)
		return;
	if (assignment_decode(text, &theirs, &err))
		fail_msg("%s: %s", id, err.text);
	if (assignment_next(&theirs, &slot) != assignment_next(&s->pending, &other) ||
		theirs.count < s->pending.count)
		fail_msg("%s: theirs has left '%s'", id, text);
	assignment_deinit(&theirs);
}

/* Whether the pod's serving goes on. */
static bool compare_outcome(const char *id, unsigned number, int result,
	V1beta1__ContainerAllocateResponse *ours, const json_t *theirs, const struct err *err)
{
	const struct row *row;

	if (result && theirs) {
		row = differences_find(id, REFUSED, NULL);
		if (!row || !strstr(err->text, row->value))
			fail_msg("%s, container %u: refused: %s", id, number, err->text);
	}
	if (!result && !theirs) {
		row = differences_find(id, ANSWERED, NULL);
		if (!row)
			fail_msg("%s, container %u: theirs refuses", id, number);
		theirs = vector_answer(vectors_find(&vectors, row->value), number);
	}
	if (!result && theirs)
		differences_compare(id, number, ours, theirs);
	if (!result)
		v1beta1__container_allocate_response__free_unpacked(ours, NULL);
	return !result;
}

static void replay(const json_t *vector, const struct config *config)
{
	const json_t *requests = json_object_get(vector, "allocate_request");
	const char *id = vector_text(vector, "id");
	_cleanup_free_ struct serving *s = calloc(1, sizeof(*s));
	struct err err = ERR_NULL;
	bool is_whole = true;
	int begun;

	assert_non_null(s);
	s->vector = vector;
	vector_read_inventory(vector, &s->inventory);
	s->node = (struct grant_node){.config = config,
		.inventory = &s->inventory,
		.unhealthy = !strcmp(id, "health-alloc-unhealthy"),
		.has_turns = true};
	begun = begin(s, &err);
	for (unsigned i = 0; i < json_array_size(requests) && is_whole; i++) {
		V1beta1__ContainerAllocateResponse *answer = NULL;
		int result = begun ? begun : serve(s, json_array_get(requests, i), &answer, &err);

		is_whole = compare_outcome(id, i, result, answer, vector_answer(vector, i), &err);
	}
	if (is_whole && !differences_find(id, ANSWERED, NULL))
		compare_rest(id, s);
	assignment_deinit(&s->pending);
}

/* What the plugin offers follows from the configuration and the devices. */
static void compare_offer(const json_t *vector, const struct config *config)
{
	const char *id = vector_text(vector, "id");
	const json_t *asked = json_array_get(json_object_get(vector, "register"), 0);
	const struct row *row = differences_find(id, REGISTERS, NULL);
	const char *expected = row ? row->value : vector_text(vector, "allocatable");
	struct inventory inventory;
	unsigned count = 0;

	vector_read_inventory(vector, &inventory);
	for (unsigned i = 0; i < inventory.count; i++)
		count += !config_is_filtered(config, &inventory.device[i]);
	if (expected && (int64_t)atoi(expected) != count * config->split_count)
		fail_msg("%s: %u devices in %d slices, not %s", id, count, (int)config->split_count,
			expected);
	if (asked)
		assert_string_equal(vector_text(asked, "resource_name"), config->resource_count);
	if (asked)
		assert_int_equal(json_is_true(json_object_get(json_object_get(asked, "options"),
					 "get_preferred_allocation_available")),
			config->has_preferred_allocation);
}

/* NULL where ours refuses it, which is compared here. */
static struct config *read_config(const json_t *vector)
{
	const char *id = vector_text(vector, "id");
	struct config *config = NULL;
	struct err err = ERR_NULL;
	const struct row *row;

	if (!vector_read_config(vector, &config, &err))
		return config;
	row = differences_find(id, CONFIG_REFUSED, NULL);
	if (row ? !strstr(err.text, row->value) : !json_object_get(vector, "exit"))
		fail_msg("%s: %s", id, err.text);
	return NULL;
}

static bool has_kind(const json_t *vector, const char *kind)
{
	return !strncmp(vector_text(vector, "kind"), kind, strlen(kind));
}

static void each_recorded_allocation_is_answered_so_or_better(void **state)
{
	unsigned count = 0;

	for (size_t i = 0; i < vectors.count; i++) {
		const json_t *vector = vectors.all[i];
		struct config *config;

		if (!has_kind(vector, "allocate") && !json_object_get(vector, "allocate_request"))
			continue;
		count++;
		if (differences_find(vector_text(vector, "id"), NOT_HERE, NULL))
			continue;
		config = read_config(vector);
		assert_non_null(config);
		replay(vector, config);
		config_free(config);
	}
	assert_int_equal(count, 68);
}

static void each_recorded_configuration_offers_the_same(void **state)
{
	unsigned count = 0;

	for (size_t i = 0; i < vectors.count; i++) {
		struct config *config;

		if (!has_kind(vectors.all[i], "register"))
			continue;
		count++;
		config = read_config(vectors.all[i]);
		if (config)
			compare_offer(vectors.all[i], config);
		config_free(config);
	}
	assert_int_equal(count, 34);
}

/* What is no answer of ours to one input. */
static void the_rest_is_of_other_parts(void **state)
{
	static const struct {
		const char *kind, *reason;
		unsigned count;
	} kinds[] = {
		{"health", "what is seen of a device over time; one of them is an allocation", 6},
		{"restart", "what a life of the process leaves behind", 7},
		{"our-library", "what programs see under our library", 9},
		{"monitor", "another program's metrics", 6},
	};

	assert_int_equal(vectors.count, 129);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		unsigned count = 0;

		for (size_t k = 0; k < vectors.count; k++)
			count += has_kind(vectors.all[k], kinds[i].kind);
		if (count != kinds[i].count)
			fail_msg("%u of kind %s: %s", count, kinds[i].kind, kinds[i].reason);
	}
}

static void each_difference_that_is_named_is_there(void **state)
{
	differences_end();
}

static int setup(void **state)
{
	vectors_open(path, &vectors);
	differences_begin(PARTS);
	return 0;
}

static int teardown(void **state)
{
	vectors_close(&vectors);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_recorded_allocation_is_answered_so_or_better),
		cmocka_unit_test(each_recorded_configuration_offers_the_same),
		cmocka_unit_test(the_rest_is_of_other_parts),
		cmocka_unit_test(each_difference_that_is_named_is_there),
	};

	path = argv[1];
	if (argc != 2)
		return 2;
	return cmocka_run_group_tests(tests, setup, teardown);
}
