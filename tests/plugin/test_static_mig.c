/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cards that an administrator has cut, which are none of the plugin's; and what a look at NVML leaves behind. The arguments
 * are the program and a library to install.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "node/nvml_library.h"
#include "sim/machine/mig.h"
#include "tests/plugin/cut_node.h"
#include "tests/unit/cmocka_ready.h"

static bool is_second_alone_healthy(void)
{
	_cleanup_free_ char *text = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;
	bool is = json_array_size(list) == 2;

	for (unsigned card = 0; card < 2 && is; card++) {
		const json_t *row = json_array_get(list, card);

		is = !strcmp(json_string_value(json_object_get(row, "id")), cut.gpus[card]) &&
		     json_is_true(json_object_get(row, "health")) == (card == 1);
	}
	json_decref(list);
	return is;
}

static void bind_whole(const char *name, unsigned card)
{
	char slots[256];

	snprintf(slots, sizeof(slots), "%s,NVIDIA,3000,30:;", cut.gpus[card]);
	cut_bind_pod(name, cut_make_pod(name, slots, NULL, 1));
}

/*
 * D26, D35: with the strategies that give instances resources of their own there is one plugin and one annotation all
 * the same, which has all devices; the card in question is not offered, and the others are.
 */
static void a_card_that_was_cut_by_hand_is_nobodys(void **state)
{
	static const char *const strategies[] = {"--mig-strategy=mixed", "--mig-strategy=single"};
	struct stage_answer answer;

	assert_int_equal(mig_set_mode(cut.machine, 0, true), 0);
	stage_configure("", NULL);
	for (unsigned i = 0; i < 2; i++) {
		const char *const flags[] = {strategies[i], NULL};
		unsigned before = stage.registrations;

		stage_start(flags);
		stage_run(600);
		assert_int_equal(stage.registrations, before + 1);
		assert_string_equal(stage.resource, "nvidia.com/gpu");
		assert_true(stage_has_said("mig-strategy"));
		stage_await(is_second_alone_healthy, 30);
		bind_whole("a", 1);
		cut_allocate(1, 1, &answer);
		cut_assert_list(&answer, cut.gpus[1]);
		stage_answer_free(&answer);
		stage_unbind("a", "Succeeded");
		bind_whole("b", 0);
		cut_refuse(0, "not healthy");
		stage_unbind("b", "Failed");
		assert_int_equal(stage_stop(SIGTERM), 0);
	}
}

/* D24: an NVML that is begun is ended with the look, or each one would leave a session of the driver's. */
static void a_look_at_nvml_leaves_none_begun(void **state)
{
	void *kept = dlopen("libnvidia-ml.so.1", RTLD_NOW); /* or it would be another at the next */
	struct nvml_library library;
	nvmlReturn_t (*count)(unsigned *);
	struct err err = ERR_NULL;
	unsigned number;

	assert_non_null(kept);
	*(void **)&count = dlsym(kept, "nvmlDeviceGetCount_v2");
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(count(&number), NVML_ERROR_UNINITIALIZED);
		assert_int_equal(nvml_library_open(NULL, &library, &err), 0);
		assert_int_equal(count(&number), NVML_SUCCESS);
		nvml_library_close(&library);
	}
	assert_int_equal(count(&number), NVML_ERROR_UNINITIALIZED);
	dlclose(kept);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cut_setup, cut_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_card_that_was_cut_by_hand_is_nobodys),
		TEST(a_look_at_nvml_leaves_none_begun),
	};

	if (argc != 3)
		return 2;
	cut_set_files(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
