/* SPDX-License-Identifier: Apache-2.0 */
/* Instances as runtimes know them: the specification is right before the kubelet has its answer, and says no more than there is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/nvml_library.h"
#include "plugin/mig/parts.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define LIBRARIES "/usr/lib64"

static struct loop *loop;
static struct parts *parts;
static struct inventory devices;
static struct config *config;
static struct cdi_request cdi;
static char root[300], folder[320], state_folder[320], capabilities[320];

static char *no_environment(const char *name)
{
	return NULL;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make_files(void)
{
	char path[512];

	snprintf(path, sizeof(path), "mkdir -p %s" LIBRARIES, root);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s" LIBRARIES "/libcuda.so.580.1", root);
	write_text(path, "");
	snprintf(folder, sizeof(folder), "%s/cdi", root);
	snprintf(state_folder, sizeof(state_folder), "%s/state", root);
	snprintf(capabilities, sizeof(capabilities), "%s/mig-minors", root);
	cdi = (struct cdi_request){.state = state_folder,
		.folder = folder,
		.driver_root = "/",
		.driver_root_here = root,
		.dev_root = "",
		.hook = "",
		.devices = &devices};
}

static void changed(void *context)
{
}

static int setup(void **state)
{
	static const char node[] = "{\"nodeconfig\":[{\"name\":\"\",\"operatingmode\":\"mig\"}]}";
	const struct config_files files = {.node_text = node, .node_bytes = sizeof(node) - 1};
	char *argv[] = {(char *)"x"};
	struct err err = ERR_NULL;
	struct flags flags;
	struct scratch *s;

	if (scratch_setup(state) || loop_new(&loop))
		return -1;
	s = *state;
	snprintf(root, sizeof(root), "%s", s->folder);
	setenv("VGPU_SIM_STATE", s->file, 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	make_files();
	if (flags_read(1, argv, no_environment, &flags, &err) ||
		config_read(&flags, &files, &config, &err) ||
		nvml_library_read_inventory(NULL, &devices, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int teardown(void **state)
{
	parts_free(parts);
	parts = NULL;
	config_free(config);
	loop_free(loop);
	return scratch_teardown(state);
}

static void begin(void)
{
	const struct parts_request request = {config, &devices, &cdi, capabilities, changed, NULL};
	struct err err = ERR_NULL;

	if (parts_new(loop, &request, &parts, &err))
		fail_msg("%s", err.text);
}

static int give(unsigned start, struct claims_given *given, struct err *err)
{
	struct assignment_device device = {.memory_mib = 1};
	const struct assignment_slot slot = {&device, 1};
	char text[512], name[] = "a";
	struct pod pod = {.space = name, .name = name, .uid = name, .instances = text};
	const struct claims_wanted wanted = {&pod, &pod, 0, &slot};

	strcpy(device.uuid, devices.device[1].uuid);
	snprintf(text, sizeof(text),
		"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"%s\",\"profile\":\"1g."
		"18gb\","
		"\"placement\":{\"start\":%u,\"size\":1}}]",
		device.uuid, start);
	return parts_give(parts, &wanted, given, err);
}

static bool is_specified(const char *word)
{
	char path[400], text[16384];
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "%s/" CDI_FILE, folder);
	file = fopen(path, "re");
	assert_non_null(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return strstr(text, word);
}

static void an_instance_is_specified_when_it_is_given(void **state)
{
	struct claims_given given;
	struct err err = ERR_NULL;
	char first[128];

	begin();
	if (give(3, &given, &err))
		fail_msg("%s", err.text);
	assert_true(is_specified(given.instances[0].uuid));
	assert_true(is_specified(devices.device[0].uuid));
	assert_int_equal(given.capabilities[0].instance, -1);
	strcpy(first, given.instances[0].uuid);
	free(given.annotation);
	/* the other pod is gone, and its instance with it */
	if (give(4, &given, &err))
		fail_msg("%s", err.text);
	assert_string_not_equal(first, given.instances[0].uuid);
	assert_true(is_specified(given.instances[0].uuid));
	assert_false(is_specified(first));
	free(given.annotation);
}

static void without_its_files_an_instance_is_refused(void **state)
{
	struct claims_given given;
	struct err err = ERR_NULL;
	char text[256];

	begin();
	write_text(capabilities, "config 1\nmonitor 2\n");
	assert_int_equal(give(3, &given, &err), -ENOENT);
	assert_non_null(strstr(err.text, "has no file for instance"));
	text[0] = '\0';
	for (unsigned id = 0; id < 16; id++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "gpu1/gi%u/access %u\n",
			id, 100 + id);
	write_text(capabilities, text);
	assert_int_equal(give(3, &given, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_instance_is_specified_when_it_is_given, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_its_files_an_instance_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
