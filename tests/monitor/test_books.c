/* SPDX-License-Identifier: Apache-2.0 */
/* What is told where the kubelet's record, a slice and a pod's annotation disagree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/books.h"

#define A "GPU-00000000-0000-0000-0000-00000000000a"
#define B "GPU-00000000-0000-0000-0000-00000000000b"

/* The one container of the one pod; what the audit was told of it stands in `said`. */
struct scene {
	const char *ids[4]; /* by the kubelet, of `resource` */
	const char *resource;
	const char *slice[3];	 /* devices of its share; none: there is no share */
	const char *assigned[3]; /* none: its annotation does not say */
	bool is_misassigned, is_waiting, is_foreign, is_listed_twice, is_cut;
	unsigned comparisons;
	char said[512];
};

static struct scene *scene;
static char uid[] = "uid", name_of_pod[] = "p1", space[] = "default", main_[] = "main",
	    slices[] = "nvidia.com/gpu";
static struct pod_name pod;
static struct pod_container container;

const struct pod_name *pod_names_find_named(
	const struct pod_names *names, const char *namespace, const char *name)
{
	return !strcmp(namespace, "default") && !strcmp(name, "p1") ? &pod : NULL;
}

void audit_books_begin(struct audit *audit)
{
	scene->comparisons = 0;
	strcpy(scene->said, "nothing");
}

void audit_books(
	struct audit *audit, const struct pod_name *its, const char *name, const char *sentence)
{
	assert_ptr_equal(its, &pod);
	assert_string_equal(name, "main");
	scene->comparisons++;
	snprintf(scene->said, sizeof(scene->said), "%s", sentence ? sentence : "right");
}

void audit_books_end(struct audit *audit)
{
}

static size_t count_of(const char *const *texts)
{
	size_t count = 0;

	while (texts[count])
		count++;
	return count;
}

static const char *compare(struct scene *its)
{
	static struct assignment_device devices[3];
	static struct assignment_slot slot;
	static struct instance instance;
	struct share share = {.device_count = 0};
	struct scan_container slice = {.uid = "uid", .name = "main", .share = &share};
	struct scan scan = {&slice, *its->slice || its->is_foreign, 1};
	V1__ContainerDevices given = V1__CONTAINER_DEVICES__INIT, *given_list[] = {&given};
	V1__ContainerResources row = V1__CONTAINER_RESOURCES__INIT, *row_list[] = {&row};
	V1__PodResources of_pod = V1__POD_RESOURCES__INIT, *pod_list[] = {&of_pod, &of_pod};
	V1__ListPodResourcesResponse answer = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
	const struct books books = {&answer, slices, NULL};
	const struct scan_place place = {"/nonexistent", "/nonexistent"};

	scene = its;
	for (size_t i = 0; i < count_of(its->slice); i++)
		strcpy(share.devices[share.device_count++].uuid, its->slice[i]);
	if (its->is_foreign)
		slice.share = NULL;
	slot = (struct assignment_slot){devices, count_of(its->assigned)};
	for (size_t i = 0; i < slot.count; i++)
		strcpy(devices[i].uuid, its->assigned[i]);
	container = (struct pod_container){
		.name = main_, .is_running = !its->is_waiting, .slot = slot.count ? &slot : NULL};
	instance = (struct instance){.container = 0};
	pod = (struct pod_name){.uid = uid,
		.containers = &container,
		.container_count = 1,
		.is_misassigned = its->is_misassigned,
		.instances = {.at = &instance, .count = its->is_cut}};
	given.resource_name = (char *)(its->resource ? its->resource : slices);
	given.device_ids = (char **)its->ids;
	given.n_device_ids = count_of(its->ids);
	row.name = main_;
	row.devices = given_list;
	row.n_devices = 1;
	of_pod.name = name_of_pod;
	of_pod.namespace_ = space;
	of_pod.containers = row_list;
	of_pod.n_containers = 1;
	answer.pod_resources = pod_list;
	answer.n_pod_resources = its->is_listed_twice ? 2 : 1;
	books_compare(&books, &place, &scan, NULL);
	return its->said;
}

#define SAYS(words, ...)                                                          \
	do {                                                                      \
		struct scene its_ = {__VA_ARGS__};                                \
		if (!strstr(compare(&its_), words))                               \
			fail_msg("'%s' is said, and not '%s'", its_.said, words); \
	} while (0)

static void what_agrees_is_right(void **state)
{
	SAYS("right", .ids = {A "-0"}, .slice = {A}, .assigned = {A});
	SAYS("right", .ids = {A "-0"}, .slice = {A});
	SAYS("right", .ids = {A "-0", A "-1"}, .slice = {A}, .assigned = {A, A});
	/* the kubelet's IDs need not be of the devices that the scheduler chose */
	SAYS("right", .ids = {A "-0"}, .slice = {B}, .assigned = {B});
	/* an instance has a UUID of its own, and HAMi's plugin makes no folder for it */
	SAYS("right", .ids = {A "-0"}, .slice = {"MIG-1"}, .assigned = {A});
	SAYS("right", .ids = {A "-0"}, .is_cut = true);
	/* a region without a share is HAMi's */
	SAYS("right", .ids = {A "-0"}, .is_foreign = true);
}

static void devices_without_a_slice_are_told(void **state)
{
	SAYS("gave container main 1 slices, and it has none on this node", .ids = {A "-0"},
		.assigned = {A});
}

static void a_slice_that_was_not_given_is_told(void **state)
{
	SAYS("has a slice of 1 devices, and the kubelet gave it 0", .slice = {A});
	SAYS("has a slice of 2 devices, and the kubelet gave it 1", .ids = {A "-0"},
		.slice = {A, B});
}

static void an_annotation_that_says_otherwise_is_told(void **state)
{
	SAYS("assigns 2 devices to container main, and the kubelet gave it 1", .ids = {A "-0"},
		.slice = {A}, .assigned = {A, B});
	SAYS("has a slice of " A ", which", .ids = {A "-0"}, .slice = {A}, .assigned = {B});
	SAYS("fits its pod's containers in no way", .ids = {A "-0"}, .slice = {A},
		.is_misassigned = true);
}

static void what_is_not_settled_or_not_ours_is_not_judged(void **state)
{
	SAYS("nothing", .ids = {A "-0"}, .is_waiting = true);
	SAYS("nothing", .ids = {A "-0"}, .is_listed_twice = true);
	SAYS("nothing", .ids = {NULL});
	/* another resource's, and a whole GPU of another plugin's */
	SAYS("nothing", .ids = {A "-0"}, .resource = "example.com/nic");
	SAYS("nothing", .ids = {A});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_agrees_is_right),
		cmocka_unit_test(devices_without_a_slice_are_told),
		cmocka_unit_test(a_slice_that_was_not_given_is_told),
		cmocka_unit_test(an_annotation_that_says_otherwise_is_told),
		cmocka_unit_test(what_is_not_settled_or_not_ours_is_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
