/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program on this machine's own devices, before a kubelet and an API server that are here: what it lists, registers and
 * answers, as lines of JSON. The arguments are the program, a library to install and the mode of the node's devices. It reads
 * lines: `bind NAME UUID MIB CORES` reserves and allocates, `unbind NAME` ends that pod, and the end of input ends all.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/plugin/stage.h"
#include "tests/unit/cmocka_ready.h"

#define LINE_BYTES 256

static const char *program, *library, *mode;

static void say(json_t *line)
{
	assert_non_null(line);
	json_dumpf(line, stdout, JSON_COMPACT | JSON_SORT_KEYS);
	puts("");
	fflush(stdout);
	json_decref(line);
}

static bool has_registered_devices(void)
{
	char *text = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	bool is_there = text;

	free(text);
	return is_there;
}

static void say_devices(void)
{
	char *registered;
	json_t *ids = json_array();

	for (size_t i = 0; i < stage.list->n_devices; i++)
		json_array_append_new(ids, json_string(stage.list->devices[i]->id));
	stage_await(has_registered_devices, 30);
	registered = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	say(json_pack("{s:s,s:s,s:o,s:o}", "folder", stage.folder, "resource", stage.resource,
		"slices", ids, "registered", json_loads(registered, 0, NULL)));
	free(registered);
}

static void say_answer(const struct stage_answer *answer)
{
	const V1beta1__ContainerAllocateResponse *first =
		answer->message ? answer->message->container_responses[0] : NULL;
	json_t *envs = json_object(), *mounts = json_array(), *devices = json_array();

	for (size_t i = 0; first && i < first->n_envs; i++)
		json_object_set_new(envs, first->envs[i]->key, json_string(first->envs[i]->value));
	for (size_t i = 0; first && i < first->n_mounts; i++)
		json_array_append_new(
			mounts, json_pack("{s:s,s:s,s:b}", "at", first->mounts[i]->container_path,
					"from", first->mounts[i]->host_path, "read_only",
					first->mounts[i]->read_only));
	for (size_t i = 0; first && i < first->n_devices; i++)
		json_array_append_new(devices, json_string(first->devices[i]->host_path));
	say(json_pack("{s:i,s:s,s:o,s:o,s:o}", "status", answer->status, "words", answer->words,
		"envs", envs, "mounts", mounts, "devices", devices));
}

static void bind_one(const char *name, const char *uuid, unsigned mib, unsigned cores)
{
	static unsigned pods;
	char uid[64], slots[128], limits[192], id[96];
	const char *ids[] = {id};
	struct stage_answer answer;

	snprintf(uid, sizeof(uid), "8f3c1f0e-2b7a-4a61-9d0f-%012u", ++pods);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,%u,%u:;", uuid, mib, cores);
	snprintf(limits, sizeof(limits),
		"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"%u\",\"nvidia.com/"
		"gpucores\":\"%u\"}",
		mib, cores);
	snprintf(id, sizeof(id), "%s-%u", uuid, pods - 1);
	stage_bind(name, uid, slots, limits);
	stage_allocate(ids, 1, &answer);
	if (!answer.status)
		apiserver_set_status(&stage.api, name, "Running");
	stage_run(100);
	say_answer(&answer);
	stage_answer_free(&answer);
}

static void obey(const char *line)
{
	char word[16], name[32], uuid[64];
	unsigned mib, cores;

	if (sscanf(line, "%15s %31s %63s %u %u", word, name, uuid, &mib, &cores) == 5 &&
		!strcmp(word, "bind")) {
		bind_one(name, uuid, mib, cores);
	} else if (sscanf(line, "%15s %31s", word, name) == 2 && !strcmp(word, "unbind")) {
		stage_unbind(name, "Succeeded");
		say(json_pack("{s:s}", "unbound", name));
	} else {
		fail_msg("%s", line);
	}
}

static void serve(void **state)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char node[128], line[LINE_BYTES];

	snprintf(node, sizeof(node),
		"{\"nodeconfig\":[{\"name\":\"" STAGE_NODE "\",\"operatingmode\":\"%s\"}]}", mode);
	stage_configure("", node);
	stage_start((const char *const[]){"--pass-device-specs=true", NULL});
	stage_watch();
	say_devices();
	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		if (poll(&input, 1, 0) == 0) {
			stage_run(50);
			continue;
		}
		if (!fgets(line, sizeof(line), stdin))
			break;
		obey(line);
	}
	assert_int_equal(stage_stop(SIGTERM), 0);
}

static int setup(void **state)
{
	return stage_begin(state, program, library);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(serve, setup, stage_end),
	};

	if (argc != 4)
		return 2;
	program = argv[1];
	library = argv[2];
	mode = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
