/* SPDX-License-Identifier: Apache-2.0 */
/* The answer that the kubelet gets for what a container is granted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugin/answer.h"
#include "tests/plugin/grant_scene.h"
#include "tests/unit/cmocka_ready.h"

static void mounts(const V1beta1__ContainerAllocateResponse *answer, const char *at,
	const char *from, bool is_read_only)
{
	const V1beta1__Mount *mount = answer_mount(answer, at);

	if (!mount)
		fail_msg("nothing is mounted at %s", at);
	assert_string_equal(mount->host_path, from);
	assert_int_equal(mount->read_only, is_read_only);
}

static void one_device_is_granted_as_it_was_assigned(void **state)
{
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer =
		grant_scene_answer(SCENE(.assigned = ONE), &grant_scene_paths, &m);

	assert_int_equal(answer->n_envs, 5);
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "3000m");
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_SM_LIMIT"), "30");
	assert_string_equal(answer_env(answer, "NVIDIA_VISIBLE_DEVICES"), UUID0);
	assert_string_equal(answer_env(answer, "LIBCUDA_LOG_LEVEL"), "1");
	assert_string_equal(answer_env(answer, "CUDA_DEVICE_MEMORY_SHARED_CACHE"),
		"/usr/local/vgpu/" UNIQUE ".cache");
	assert_int_equal(answer->n_mounts, 5);
	mounts(answer, "/usr/local/vgpu/libvgpu.so", "/usr/local/vgpu/libvgpu.so.1", true);
	mounts(answer, "/etc/ld.so.preload", "/usr/local/vgpu/ld.so.preload", true);
	mounts(answer, "/usr/local/vgpu", "/usr/local/vgpu/containers/" UID "_a", false);
	mounts(answer, "/tmp/vgpulock", "/tmp/vgpulock", false);
	mounts(answer, "/etc/vgpu", "/usr/local/vgpu/shares/" UID "_a", true);
	assert_string_equal(m.grant.folder, UID "_a");
	grant_made_free(answer, &m);
}

static void the_library_is_left_out_only_where_that_may_be(void **state)
{
	static const struct {
		const char *value;
		bool is_honoured, has_library;
	} cases[] = {{NULL, true, true}, {"", true, true}, {"true", true, false},
		{"1", true, false}, {"T", true, false}, {"yes", true, true}, {"0", true, true},
		{"tRUE", true, true}, {"true", false, true}, {"1", false, true}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct grant_made m;
		V1beta1__ContainerAllocateResponse *answer = grant_scene_answer(
			SCENE(.assigned = ONE, .disable_control = cases[i].value,
				.config = cases[i].is_honoured
						  ? NULL
						  : "cantaloupe:\n  honourDisableControl: false\n"),
			&grant_scene_paths, &m);

		assert_int_equal(
			answer_mount(answer, "/etc/ld.so.preload") != NULL, cases[i].has_library);
		assert_non_null(answer_env(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"));
		assert_non_null(answer_mount(answer, "/etc/vgpu"));
		grant_made_free(answer, &m);
	}
}

static void what_was_made_ready_is_mounted(void **state)
{
	struct grant_paths all = grant_scene_paths;
	char record[256];
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer;

	all.region_file = "/usr/local/vgpu/containers/" UID "_a/" UNIQUE ".cache";
	all.lock_folder = "/tmp/vgpulock";
	all.turns_folder = "/run/cantaloupe/turns";
	all.records[1] = "/run/cantaloupe/turns/r1";
	all.license = "/usr/local/vgpu/license";
	answer = grant_scene_answer(SCENE(.assigned = TWO), &all, &m);
	mounts(answer, "/usr/local/vgpu", all.region_folder, true);
	mounts(answer, "/usr/local/vgpu/" UNIQUE ".cache", all.region_file, false);
	mounts(answer, "/tmp/vgpulock", "/tmp/vgpulock", true);
	mounts(answer, "/run/vgpu-turns", all.turns_folder, true);
	snprintf(record, sizeof(record), "/run/vgpu-turns/" UUID1 "/%s", m.grant.slice);
	mounts(answer, record, all.records[1], false);
	mounts(answer, "/tmp/license", all.license, true);
	assert_null(answer_mount(answer, "/usr/bin/vgpuvalidator"));
	assert_int_equal(answer->n_mounts, 9);
	grant_made_free(answer, &m);
}

/* A runtime makes a folder in the place of a file that is not there, and there would be no limit. */
static void what_is_missing_refuses_the_answer(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct grant_paths some = grant_scene_paths;
		const char **each[] = {
			&some.library, &some.preload, &some.region_folder, &some.share_folder};
		V1beta1__ContainerAllocateResponse *answer = NULL;
		struct err err = ERR_NULL;
		struct grant_made m;

		*each[i] = i & 1 ? "" : NULL;
		assert_int_equal(grant_scene_plan(SCENE(.assigned = ONE), &m, &err), 0);
		assert_int_equal(grant_answer(&m.node, &m.grant, &some, &answer, &err), -EINVAL);
		assert_non_null(strstr(err.text, "is not there"));
		grant_made_free(NULL, &m);
	}
}

static void environment_says_what_the_configuration_says(void **state)
{
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer = grant_scene_answer(
		SCENE(.assigned = ONE,
			.config = "nvidia:\n  deviceMemoryScaling: 1.5\n  disableCoreLimit: true\n"
				  "  libCudaLogLevel: \"\"\n"),
		&grant_scene_paths, &m);

	assert_string_equal(answer_env(answer, "CUDA_OVERSUBSCRIBE"), "true");
	assert_string_equal(answer_env(answer, "GPU_CORE_UTILIZATION_POLICY"), "disable");
	assert_null(answer_env(answer, "LIBCUDA_LOG_LEVEL"));
	grant_made_free(answer, &m);
}

static void volume_mounts_name_devices_by_files(void **state)
{
	static const unsigned channels[] = {0, 7};
	struct grant_paths some = grant_scene_paths;
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer;

	some.imex_channels = channels;
	some.imex_channel_count = 2;
	answer = grant_scene_answer(
		SCENE(.assigned = TWO,
			.arguments = {"--device-list-strategy=envvar,volume-mounts"}),
		&some, &m);
	assert_string_equal(
		answer_env(answer, "NVIDIA_VISIBLE_DEVICES"), "/var/run/nvidia-container-devices");
	assert_string_equal(answer_env(answer, "NVIDIA_IMEX_CHANNELS"), "0,7");
	mounts(answer, "/var/run/nvidia-container-devices/" UUID1, "/dev/null", false);
	mounts(answer, "/var/run/nvidia-container-devices/imex/7", "/dev/null", false);
	grant_made_free(answer, &m);
}

#define CDI "k8s.device-plugin.nvidia.com/"

static void cdi_names_devices_and_nothing_else(void **state)
{
	static const unsigned channels[] = {3};
	struct grant_paths some = grant_scene_paths;
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer;

	some.imex_channels = channels;
	some.imex_channel_count = 1;
	answer = grant_scene_answer(
		SCENE(.assigned = TWO,
			.arguments = {"--device-list-strategy=cdi-annotations,cdi-cri",
				"--device-id-strategy=index", "--gds-enabled", "--mofed-enabled",
				"--pass-device-specs", "--gdrcopy-enabled"}),
		&some, &m);
	assert_null(answer_env(answer, "NVIDIA_VISIBLE_DEVICES"));
	assert_null(answer_env(answer, "NVIDIA_GDS"));
	assert_int_equal(answer->n_devices, 0);
	assert_int_equal(answer->n_annotations, 1);
	assert_string_equal(answer->annotations[0]->key, "cdi.k8s.io/nvidia-device-plugin_" UNIQUE);
	assert_string_equal(answer->annotations[0]->value,
		CDI "gpu=0," CDI "gpu=1," CDI "imex-channel=3," CDI "gdrcopy=all," CDI
		    "gds=all," CDI "mofed=all");
	assert_int_equal(answer->n_cdi_devices, 6);
	assert_string_equal(answer->cdi_devices[2]->name, CDI "imex-channel=3");
	grant_made_free(answer, &m);
}

static void device_files_are_named_as_the_host_has_them(void **state)
{
	static const char *const control[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
	struct grant_paths some = grant_scene_paths;
	struct grant_made m;
	V1beta1__ContainerAllocateResponse *answer;

	some.control_files = control;
	some.control_file_count = 2;
	answer = grant_scene_answer(
		SCENE(.assigned = UUID1 ",NVIDIA,1,1:;",
			.arguments = {"--pass-device-specs", "--nvidia-driver-root=/run/driver"}),
		&some, &m);
	assert_int_equal(answer->n_devices, 3);
	assert_string_equal(answer->devices[0]->container_path, "/dev/nvidiactl");
	assert_string_equal(answer->devices[0]->host_path, "/run/driver/dev/nvidiactl");
	assert_string_equal(answer->devices[2]->container_path, "/dev/nvidia5");
	assert_string_equal(answer->devices[2]->permissions, "rw");
	grant_made_free(answer, &m);
}

/* Parts of one card have its file once, and each its own two. */
static void instances_are_named_and_nothing_else_is_said(void **state)
{
	const char *arguments[] = {"--device-list-strategy=envvar,cdi-cri",
		"--device-id-strategy=index", "--pass-device-specs", NULL};
	struct config *config = grant_scene_config(NULL, arguments);
	struct config_devices *cut = &config->of_mode[CONFIG_MIG];
	const struct grant_node node = {.config = config, .inventory = &grant_scene_inventory};
	const struct grant_paths none = {.library = NULL};
	struct assignment a = ASSIGNMENT_NULL;
	struct grant grant;
	struct err err = ERR_NULL;
	V1beta1__ContainerAllocateResponse *answer;

	cut->indexes = calloc(1, sizeof(*cut->indexes));
	*cut->indexes = 1;
	cut->index_count = 1;
	assert_int_equal(assignment_decode(UUID1 ",NVIDIA,1,1:" UUID1 ",NVIDIA,1,1:;" UUID1
						 ",NVIDIA,1,1:" UUID0 ",NVIDIA,1,1:;" UUID0
						 ",NVIDIA,1,1:" UUID1 ",NVIDIA,1,1:;",
				 &a, &err),
		0);
	assert_true(grant_is_of_parts(&node, &a.slots[0]));
	assert_int_equal(grant_plan_parts(&node, "a", &a.slots[0], 1, &grant, &err), -EINVAL);
	assert_non_null(strstr(err.text, "device number not matched"));
	assert_int_equal(grant_plan_parts(&node, "a", &a.slots[1], 2, &grant, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is whole, and others of container a are in parts"));
	assert_false(grant_is_of_parts(&node, &a.slots[2]));
	assert_int_equal(grant_plan_parts(&node, "a", &a.slots[0], 2, &grant, &err), 0);
	grant.devices[0].part = (struct grant_part){"MIG-a", {12, 13}};
	grant.devices[1].part = (struct grant_part){"MIG-b", {-1, -1}};
	assert_int_equal(grant_answer(&node, &grant, &none, &answer, &err), 0);
	assert_int_equal(answer->n_envs, 1);
	assert_string_equal(answer_env(answer, "NVIDIA_VISIBLE_DEVICES"), "MIG-a,MIG-b");
	assert_int_equal(answer->n_mounts, 0);
	assert_int_equal(answer->n_cdi_devices, 2);
	assert_string_equal(answer->cdi_devices[1]->name, CDI "gpu=MIG-b");
	assert_int_equal(answer->n_devices, 3);
	assert_string_equal(answer->devices[0]->container_path, "/dev/nvidia5");
	assert_string_equal(answer->devices[2]->container_path, "/dev/nvidia-caps/nvidia-cap13");
	v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	assignment_deinit(&a);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_device_is_granted_as_it_was_assigned),
		cmocka_unit_test(the_library_is_left_out_only_where_that_may_be),
		cmocka_unit_test(what_was_made_ready_is_mounted),
		cmocka_unit_test(what_is_missing_refuses_the_answer),
		cmocka_unit_test(environment_says_what_the_configuration_says),
		cmocka_unit_test(volume_mounts_name_devices_by_files),
		cmocka_unit_test(cdi_names_devices_and_nothing_else),
		cmocka_unit_test(device_files_are_named_as_the_host_has_them),
		cmocka_unit_test(instances_are_named_and_nothing_else_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
