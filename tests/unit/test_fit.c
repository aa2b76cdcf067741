/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod fits on a node: single rules by example, and on random nodes what must hold of every answer. */
#include <string.h>

#include "tests/unit/cmocka_ready.h"
#include "policy/fit.h"

#define DEVICES 4

static struct fit_result result;

static struct fit_device card(const char *uuid, int64_t used_mib, int64_t used_cores)
{
	return (struct fit_device){.uuid = uuid,
		.model = "NVIDIA A30",
		.mode = "hami-core",
		.is_healthy = true,
		.all = {10, 24576, 100},
		.used = {used_mib || used_cores, used_mib, used_cores}};
}

static struct fit_pod asks(const struct fit_request *requests, size_t count)
{
	return (struct fit_pod){.requests = requests,
		.request_count = count,
		.policy = rank_policy_of("spread", false),
		.weights = rank_weights_default,
		.room = {INT64_MAX, INT64_MAX}};
}

static void an_init_container_adds_nothing_to_those_after_it(void **state)
{
	struct fit_device device = card("a", 0, 0);
	struct fit_node node = {.devices = &device, .device_count = 1};
	struct fit_request requests[] = {{FIT_INIT, 1, 20000, -1, 0}, {FIT_INIT, 1, 20000, -1, 0},
		{FIT_APP, 1, 20000, -1, 0}};
	struct fit_pod pod = asks(requests, 3);

	assert_true(fit(&node, &pod, &result));
	requests[0].kind = FIT_SIDECAR;
	assert_false(fit(&node, &pod, &result));
	assert_int_equal(result.reasons[FIT_LACKS_MEMORY], 1);
}

/* What a pod says of models and UUIDs is looked up once for all of its containers, and once for models that are alike. */
static void each_container_has_a_device_of_the_type(void **state)
{
	struct fit_device devices[] = {
		card("a", 0, 0), card("b", 0, 0), card("c", 0, 0), card("d", 0, 0)};
	struct fit_node node = {.devices = devices, .device_count = 4};
	struct fit_request requests[] = {{FIT_APP, 1, 20000, -1, 0}, {FIT_APP, 1, 20000, -1, 0}};
	struct fit_pod pod = asks(requests, 2);

	devices[0].model = devices[2].model = devices[3].model = "NVIDIA H100";
	pod.types = "h100";
	pod.not_uuids = "x, c";
	assert_true(fit(&node, &pod, &result));
	assert_int_equal(result.choice_count, 2);
	assert_int_equal(result.choices[0].device + result.choices[1].device, 3);
	pod.not_uuids = "c,d";
	assert_false(fit(&node, &pod, &result));
	assert_int_equal(result.reasons[FIT_TYPE_DIFFERS], 1);
	assert_int_equal(result.reasons[FIT_UUID_DIFFERS], 2);
	pod.request_count = 1;
	pod.not_types = "H1";
	assert_false(fit_surely(&node, &pod, &result));
	pod.not_types = "A30";
	assert_true(fit_surely(&node, &pod, &result));
}

static void a_whole_device_is_nobody_elses(void **state)
{
	struct fit_device device = card("a", 1000, 0);
	struct fit_node node = {.devices = &device, .device_count = 1};
	struct fit_request request = {FIT_APP, 1, 1000, -1, 100};
	struct fit_pod pod = asks(&request, 1);

	assert_false(fit(&node, &pod, &result));
	assert_int_equal(result.reasons[FIT_EXCLUSIVE], 1);
	device = card("a", 1000, 100);
	request.cores = 0;
	assert_false(fit(&node, &pod, &result));
	assert_int_equal(result.reasons[FIT_COMPUTE_EXHAUSTED], 1);
}

static void a_device_with_mps_is_given_alone(void **state)
{
	struct fit_device devices[] = {card("a", 0, 0), card("b", 0, 0)};
	const struct fit_node node = {.devices = devices, .device_count = 2};
	struct fit_request requests[] = {{FIT_APP, 2, 1000, -1, 0}, {FIT_APP, 1, 1000, -1, 0}};
	const struct fit_pod both = asks(requests, 1), one = asks(&requests[1], 1);

	devices[0].mode = "mps";
	assert_false(fit(&node, &both, &result));
	assert_int_equal(result.reasons[FIT_TYPE_DIFFERS], 1);
	assert_false(fit_surely(&node, &both, &result));
	devices[1].is_healthy = false;
	assert_true(fit(&node, &one, &result));
	assert_int_equal(result.choices[0].device, 0);
}

static void each_device_is_told_why_not_and_how_full(void **state)
{
	const struct fit_device devices[] = {card("a", 0, 0), card("b", 24000, 0)};
	const struct fit_node node = {.devices = devices, .device_count = 2};
	const struct fit_request requests[] = {
		{FIT_APP, 1, 1000, -1, 50}, {FIT_APP, 2, 1000, -1, 0}, {FIT_APP, 1, 1, -1, 0}};
	const struct fit_pod pod = asks(requests, 3);
	struct fit_sight sights[6] = {0};

	assert_false(fit_explain(&node, &pod, &result, sights));
	assert_int_equal(sights[0].reason, FIT_REASONS);
	assert_int_equal(sights[0].memory_mib, 1000);
	assert_true(sights[0].score > 6.4 &&
		    sights[0].score < 6.41); /* 1/10, 1000/24576 and 50/100 of 10 */
	assert_int_equal(sights[1].reason, FIT_LACKS_MEMORY);
	assert_int_equal(sights[2].reason, FIT_REASONS);
	assert_true(sights[2].score > sights[0].score);
	assert_int_equal(sights[3].reason, FIT_LACKS_MEMORY);
	assert_false(sights[4].is_seen || sights[5].is_seen);
}

static void a_quota_counts_what_is_held_at_once(void **state)
{
	struct fit_device device = card("a", 0, 0);
	struct fit_node node = {.devices = &device, .device_count = 1};
	struct fit_request requests[] = {{FIT_INIT, 1, 3000, -1, 0}, {FIT_APP, 1, 3000, -1, 0}};
	struct fit_pod pod = asks(requests, 2);

	pod.room.memory_mib = 3000;
	assert_true(fit(&node, &pod, &result));
	pod.room.memory_mib = 2999;
	assert_false(fit(&node, &pod, &result));
	assert_int_equal(result.reasons[FIT_QUOTA], 1);
}

static void an_instance_is_not_promised_twice(void **state)
{
	struct mig_profile profiles[] = {
		{"1g.10gb", 9856, 14, 1, {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}},
			7},
		{"7g.80gb", 80768, 100, 7, {{0, 8}}, 1}};
	struct fit_device device = card("a", 0, 0);
	struct fit_node node = {.devices = &device, .device_count = 1};
	struct fit_request requests[] = {{FIT_APP, 7, 5000, -1, 0}, {FIT_APP, 1, 5000, -1, 0}};
	struct fit_pod pod = asks(requests, 1);
	uint32_t taken = 0;

	device.all.memory_mib = 81559;
	device.is_mig = true;
	device.profiles = profiles;
	device.profile_count = 2;
	assert_true(fit(&node, &pod, &result));
	assert_int_equal(result.choice_count, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(taken & mig_slices(result.choices[i].mig.place), 0);
		taken |= mig_slices(result.choices[i].mig.place);
	}
	pod.request_count = 2;
	assert_false(fit(&node, &pod, &result));

	/* an init container's instance may be the next one's, but no other may overlap it */
	requests[0] = (struct fit_request){FIT_INIT, 1, 60000, -1, 0};
	requests[1] = requests[0];
	requests[1].kind = FIT_APP;
	assert_true(fit(&node, &pod, &result));
	requests[1].memory_mib = 5000;
	assert_true(fit(&node, &pod, &result));
	assert_ptr_equal(result.choices[1].mig.profile, &profiles[1]);
	requests[0].kind = FIT_SIDECAR;
	assert_false(fit(&node, &pod, &result));
	requests[0].kind = FIT_INIT;
	requests[0].memory_mib = 5000;
	requests[1].memory_mib = 60000;
	assert_false(fit(&node, &pod, &result));
}

static uint32_t seed = 1;

static int64_t draw(int64_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (int64_t)(seed >> 8) % below;
}

static void draw_request(struct fit_request *request)
{
	*request = (struct fit_request){.kind = (enum fit_kind)draw(3),
		.devices = draw(4),
		.memory_mib = draw(2) ? draw(30000) : 0,
		.percentage = draw(2) ? draw(101) : -1,
		.cores = draw(3) ? draw(60) : draw(2) * 100};
}

/* What runs at the same time as container `at`, it included, on a device. */
static struct rank_amount at_once(const struct fit_pod *pod, size_t at, uint32_t device)
{
	struct rank_amount amount = {0};

	for (size_t i = 0; i < result.choice_count; i++) {
		const struct fit_choice *choice = &result.choices[i];
		enum fit_kind kind = pod->requests[choice->request].kind;

		if (choice->device != device || choice->request > at ||
			(choice->request < at && kind == FIT_INIT))
			continue;
		amount.slots++;
		amount.memory_mib += choice->memory_mib;
		amount.cores += choice->cores;
	}
	return amount;
}

static void check_choices(const struct fit_node *node, const struct fit_pod *pod)
{
	struct rank_amount sums[DEVICES], most[DEVICES] = {0};

	fit_sum(pod, result.choices, result.choice_count, node->device_count, sums);
	for (size_t at = 0; at < pod->request_count; at++)
		for (uint32_t d = 0; d < node->device_count; d++) {
			const struct fit_device *device = &node->devices[d];
			struct rank_amount now = at_once(pod, at, d);

			assert_true(
				!now.slots || device->used.slots + now.slots <= device->all.slots);
			assert_true(!now.slots || device->used.memory_mib + now.memory_mib <=
							  device->all.memory_mib);
			assert_true(
				!now.slots || device->used.cores + now.cores <= device->all.cores);
			most[d].memory_mib = now.memory_mib > most[d].memory_mib
						     ? now.memory_mib
						     : most[d].memory_mib;
		}
	for (uint32_t d = 0; d < node->device_count; d++)
		assert_int_equal(sums[d].memory_mib, most[d].memory_mib);
}

/* A container alone fits if and only if as many devices would do, each for itself. */
static size_t count_that_do(const struct fit_node *node, const struct fit_pod *pod)
{
	struct fit_request one = pod->requests[0];
	struct fit_pod alone = *pod;
	size_t count = 0;

	one.devices = 1;
	alone.requests = &one;
	for (size_t i = 0; i < node->device_count; i++) {
		struct fit_node single = {.devices = &node->devices[i], .device_count = 1};

		count += fit(&single, &alone, &result);
	}
	return count;
}

static void no_device_is_given_twice(void **state)
{
	static const char *const policies[] = {
		"spread", "binpack", "mutex", "numa,binpack", "topology-aware", "numa"};

	for (unsigned round = 0; round < 100000; round++) {
		struct fit_device devices[DEVICES];
		struct fit_request requests[3];
		struct fit_node node = {
			.devices = devices, .device_count = 1 + (size_t)draw(DEVICES)};
		struct fit_pod pod = asks(requests, 1 + (size_t)draw(3));
		bool is_sure;
		size_t enough;

		for (size_t i = 0; i < DEVICES; i++) {
			devices[i] = card((const char *[]){"a", "b", "c", "d"}[i],
				draw(2) * draw(26000), draw(2) * draw(110));
			devices[i].numa = (unsigned)draw(2);
		}
		for (size_t i = 0; i < 3; i++)
			draw_request(&requests[i]);
		pod.is_numa_bound = !draw(4);
		pod.policy = rank_policy_of(
			policies[draw((int64_t)(sizeof(policies) / sizeof(*policies)))],
			pod.is_numa_bound);
		enough = pod.request_count == 1 && !pod.is_numa_bound ? count_that_do(&node, &pod)
								      : 0;
		is_sure = fit_surely(&node, &pod, &result);
		if (pod.request_count == 1 && !pod.is_numa_bound && requests[0].devices)
			assert_int_equal(is_sure, fit(&node, &pod, &result));
		assert_true(!is_sure || fit(&node, &pod, &result));
		if (fit(&node, &pod, &result)) {
			assert_true(!enough || enough >= (size_t)requests[0].devices);
			check_choices(&node, &pod);
		} else if (pod.request_count == 1 && !pod.is_numa_bound) {
			assert_true(enough < (size_t)requests[0].devices);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_init_container_adds_nothing_to_those_after_it),
		cmocka_unit_test(each_container_has_a_device_of_the_type),
		cmocka_unit_test(a_whole_device_is_nobody_elses),
		cmocka_unit_test(a_device_with_mps_is_given_alone),
		cmocka_unit_test(each_device_is_told_why_not_and_how_full),
		cmocka_unit_test(a_quota_counts_what_is_held_at_once),
		cmocka_unit_test(an_instance_is_not_promised_twice),
		cmocka_unit_test(no_device_is_given_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
