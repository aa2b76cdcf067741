/* SPDX-License-Identifier: Apache-2.0 */
/* The specification of the node's devices for the Container Device Interface. */
#include "plugin/host/cdi.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/cmocka_ready.h"

#define FOLDER "/usr/lib/x86_64-linux-gnu"

static char root[64], cdi[128], own[128];
static struct inventory devices = {.count = 2,
	.device = {{.index = 0, .minor = 1, .uuid = "GPU-a"},
		{.index = 1, .minor = 0, .uuid = "GPU-b"}}};
static struct cdi_request request;

static void put_file(const char *path)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	file = fopen(whole, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(chmod(whole, 0755), 0);
}

static int setup(void **state)
{
	char command[512];

	strcpy(root, "/tmp/vgpu-cdi-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(cdi, sizeof(cdi), "%s/run/cdi", root);
	snprintf(command, sizeof(command), "mkdir -p %s" FOLDER " %s/dev %s/usr/bin", root, root,
		root);
	assert_int_equal(system(command), 0);
	put_file(FOLDER "/libcuda.so.580.159.04");
	put_file(FOLDER "/libnvidia-ml.so.580.159.04");
	put_file(FOLDER "/libm.so.6");
	put_file("/usr/bin/nvidia-smi");
	put_file("/dev/nvidiactl");
	snprintf(own, sizeof(own), "%s/state", root);
	request = (struct cdi_request){.state = own,
		.folder = cdi,
		.driver_root = "/drv",
		.driver_root_here = root,
		.dev_root = "",
		.hook = "/usr/bin/nvidia-ctk",
		.devices = &devices};
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static json_t *read_spec(void)
{
	struct err err = ERR_NULL;
	char path[256];
	json_t *spec;

	if (cdi_write(&request, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(path, sizeof(path), "%s/" CDI_FILE, cdi);
	spec = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(spec);
	return spec;
}

static const json_t *edits_of(const json_t *of, const char *what)
{
	return json_object_get(json_object_get(of, "containerEdits"), what);
}

static const char *text_of(const json_t *list, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(list, i), key));
}

static void each_device_is_known_by_its_name(void **state)
{
	json_t *spec = read_spec(), *list = json_object_get(spec, "devices");
	const json_t *second;

	assert_string_equal(json_string_value(json_object_get(spec, "kind")), CDI_KIND);
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(text_of(list, 0, "name"), "GPU-a");
	assert_string_equal(text_of(list, 1, "name"), "GPU-b");
	second = edits_of(json_array_get(list, 1), "deviceNodes");
	assert_string_equal(text_of(second, 0, "path"), "/dev/nvidia0");
	assert_string_equal(text_of(second, 0, "hostPath"), "/drv/dev/nvidia0");
	json_decref(spec);
	request.has_indexes = true;
	spec = read_spec();
	assert_string_equal(text_of(json_object_get(spec, "devices"), 1, "name"), "1");
	json_decref(spec);
}

/* Without its two files of the kernel no program can use an instance. */
static void an_instance_has_its_cards_file_and_its_own(void **state)
{
	static const struct cdi_part parts[] = {{"MIG-a", 1, {12, 13}}, {"MIG-b", 0, {-1, -1}}};
	json_t *spec;
	const json_t *list, *nodes;

	request.parts = parts;
	request.part_count = 2;
	spec = read_spec();
	list = json_object_get(spec, "devices");
	assert_int_equal(json_array_size(list), 4);
	assert_string_equal(text_of(list, 2, "name"), "MIG-a");
	nodes = edits_of(json_array_get(list, 2), "deviceNodes");
	assert_int_equal(json_array_size(nodes), 3);
	assert_string_equal(text_of(nodes, 0, "path"), "/dev/nvidia1");
	assert_string_equal(text_of(nodes, 1, "hostPath"), "/drv/dev/nvidia-caps/nvidia-cap12");
	assert_string_equal(text_of(nodes, 2, "path"), "/dev/nvidia-caps/nvidia-cap13");
	nodes = edits_of(json_array_get(list, 3), "deviceNodes");
	assert_int_equal(json_array_size(nodes), 1);
	json_decref(spec);
}

static void the_kernel_says_which_files_are_an_instances(void **state)
{
	static const char text[] =
		"config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\n"
		"gpu1/gi1/access 30\ngpu1/gi1/ci0/access 31\ngpu1/gi10/access 90\n";
	struct capability found;
	struct err err = ERR_NULL;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/mig-minors", root);
	assert_int_equal(capability_find(path, 1, 1, 0, &found, &err), 0);
	assert_int_equal(found.instance, -1);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(capability_find(path, 1, 1, 0, &found, &err), 0);
	assert_int_equal(found.instance, 30);
	assert_int_equal(found.compute, 31);
	assert_int_equal(capability_find(path, 1, 1, 1, &found, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no file for instance 1 of /dev/nvidia1"));
	assert_int_equal(capability_find(path, 1, 10, 0, &found, &err), -ENOENT);
	assert_int_equal(capability_find(path, 2, 1, 0, &found, &err), -ENOENT);
}

static void the_drivers_files_come_with_each(void **state)
{
	json_t *spec = read_spec();
	const json_t *mounts = edits_of(spec, "mounts"), *hooks = edits_of(spec, "hooks");

	assert_int_equal(json_array_size(mounts), 3);
	assert_string_equal(text_of(mounts, 0, "hostPath"), "/drv" FOLDER "/libcuda.so.580.159.04");
	assert_string_equal(text_of(mounts, 0, "containerPath"), FOLDER "/libcuda.so.580.159.04");
	assert_string_equal(text_of(mounts, 2, "containerPath"), "/usr/bin/nvidia-smi");
	assert_int_equal(json_array_size(hooks), 2);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(json_array_get(hooks, 0), "args"), 4)),
		"libcuda.so.580.159.04::" FOLDER "/libcuda.so.1");
	assert_string_equal(json_string_value(json_array_get(edits_of(spec, "env"), 0)),
		"NVIDIA_VISIBLE_DEVICES=void");
	assert_string_equal(text_of(edits_of(spec, "deviceNodes"), 0, "path"), "/dev/nvidiactl");
	json_decref(spec);
	/* Without the hook the links are mounts. */
	request.hook = "";
	spec = read_spec();
	mounts = edits_of(spec, "mounts");
	assert_int_equal(json_array_size(mounts), 5);
	assert_string_equal(text_of(mounts, 1, "hostPath"), "/drv" FOLDER "/libcuda.so.580.159.04");
	assert_string_equal(text_of(mounts, 1, "containerPath"), FOLDER "/libcuda.so.1");
	assert_int_equal(json_array_size(edits_of(spec, "hooks")), 0);
	json_decref(spec);
}

static void refuse(int error)
{
	struct err err = ERR_NULL;

	assert_int_equal(cdi_write(&request, &err), -error);
	assert_true(err.text[0]);
}

static void what_no_container_could_use_is_not_written(void **state)
{
	struct inventory wrong = devices;
	struct stat before, after;
	char path[256];

	json_decref(read_spec());
	snprintf(path, sizeof(path), "%s/" CDI_FILE, cdi);
	assert_int_equal(stat(path, &before), 0);
	put_file(FOLDER "/libcuda.so.570.1");
	refuse(EEXIST);
	request.driver_root_here = "/nowhere";
	refuse(ENOENT);
	request.hook = "nvidia-ctk";
	refuse(EINVAL);
	strcpy(wrong.device[1].uuid, "a b");
	request.devices = &wrong;
	refuse(EINVAL);
	wrong.count = 0;
	refuse(ENODEV);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static json_t *read_extra(const char *class)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/" CDI_VENDOR "-%s.json", cdi, class);
	return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

static void what_comes_beside_the_devices_is_a_kind_of_its_own(void **state)
{
	static const unsigned channels[] = {0, 7};
	struct err err = ERR_NULL;
	char command[512];
	json_t *spec;
	const json_t *nodes;

	request.extras = CDI_GDRCOPY | CDI_MOFED;
	request.channels = channels;
	request.channel_count = 2;
	assert_int_equal(cdi_write(&request, &err), -ENOENT);
	assert_string_equal(err.text, "--gdrcopy-enabled, and /dev/gdrdrv is not there");
	snprintf(command, sizeof(command),
		"mkdir -p %s/dev/infiniband %s/dev/nvidia-caps-imex-channels", root, root);
	assert_int_equal(system(command), 0);
	put_file("/dev/gdrdrv");
	put_file("/dev/infiniband/uverbs0");
	put_file("/dev/infiniband/uverbs1");
	put_file("/dev/infiniband/rdma_cm");
	put_file("/dev/nvidia-caps-imex-channels/channel7");
	json_decref(read_spec());
	spec = read_extra("mofed");
	assert_string_equal(json_string_value(json_object_get(spec, "kind")), CDI_VENDOR "/mofed");
	assert_string_equal(text_of(json_object_get(spec, "devices"), 0, "name"), "all");
	nodes = edits_of(json_array_get(json_object_get(spec, "devices"), 0), "deviceNodes");
	assert_int_equal(json_array_size(nodes), 3);
	assert_string_equal(text_of(nodes, 0, "hostPath"), "/drv/dev/infiniband/uverbs0");
	json_decref(spec);
	spec = read_extra("imex-channel");
	assert_int_equal(json_array_size(json_object_get(spec, "devices")), 1);
	assert_string_equal(text_of(json_object_get(spec, "devices"), 0, "name"), "7");
	json_decref(spec);
	assert_null(read_extra("gds"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_device_is_known_by_its_name, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_instance_has_its_cards_file_and_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_kernel_says_which_files_are_an_instances, setup, teardown),
		cmocka_unit_test_setup_teardown(the_drivers_files_come_with_each, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_no_container_could_use_is_not_written, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_comes_beside_the_devices_is_a_kind_of_its_own, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
