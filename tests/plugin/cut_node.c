/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated node whose cards are cut into instances, with the program before it. */
#include "tests/plugin/cut_node.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kube/instances.h"
#include "sim/machine/mig.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

#define ONE "{\"nvidia.com/gpu\":\"1\"}"

struct cut cut;

static const char *program, *library;

void cut_set_files(const char *program_file, const char *library_file)
{
	program = program_file;
	library = library_file;
}

void cut_take_machine(const char *board)
{
	uint8_t uuid[16];

	setenv("VGPU_SIM_BOARD", board, 1);
	assert_int_equal(machine_open(NULL, NULL, &cut.machine, NULL, 0), 0);
	for (int i = 0; i < 2; i++) {
		board_uuid(machine_board(cut.machine), i, uuid);
		machine_uuid_text(uuid, cut.gpus[i]);
	}
}

int cut_setup(void **state)
{
	int result = stage_begin(state, program, library);

	stage_configure("", CUT_NODE);
	cut_take_machine("h200x2");
	return result;
}

int cut_teardown(void **state)
{
	stage_stop(SIGTERM);
	machine_close(cut.machine);
	return stage_end(state);
}

unsigned cut_count(int gpu)
{
	struct mig_card card;
	unsigned count = 0;

	mig_read(cut.machine, gpu, &card);
	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		count += card.instance[i].is_used;
	return count;
}

void cut_forget_instances(int gpu)
{
	struct mig_card card;

	mig_read(cut.machine, gpu, &card);
	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		if (card.instance[i].is_used) {
			mig_destroy_compute(cut.machine, gpu, card.instance[i].id, 0);
			assert_int_equal(mig_destroy(cut.machine, gpu, card.instance[i].id), 0);
		}
	assert_int_equal(mig_set_mode(cut.machine, gpu, false), 0);
}

/* The name of the instance at exactly this place, "" where there is none. */
const char *cut_instance(int gpu, const char *profile, unsigned start)
{
	static char uuid[MACHINE_UUID_SIZE];
	struct mig_card card;

	uuid[0] = '\0';
	mig_read(cut.machine, gpu, &card);
	for (int i = 0; i < MIG_INSTANCES_MAX; i++) {
		const struct mig_instance *one = &card.instance[i];

		if (one->is_used && one->start == start && one->compute[0].is_used &&
			!strcmp(mig_profile_of_id(machine_board(cut.machine), one->profile_id)
					->name,
				profile))
			mig_uuid_text(machine_board(cut.machine), gpu, one->id, 0, uuid);
	}
	return uuid;
}

pid_t cut_start_program(int gpu, const char *uuid)
{
	struct mig_card card;
	char other[MACHINE_UUID_SIZE];
	int instance = -1;

	mig_read(cut.machine, gpu, &card);
	for (int i = 0; uuid && i < MIG_INSTANCES_MAX; i++) {
		mig_uuid_text(machine_board(cut.machine), gpu, card.instance[i].id, 0, other);
		if (card.instance[i].is_used && !strcmp(uuid, other))
			instance = (int)card.instance[i].id;
	}
	return mig_program_start(gpu, instance);
}

/* ----- pods ----- */

/* A reservation of one instance, for a text of them. */
void cut_reserve(char *text, size_t size, unsigned container, unsigned device, int gpu,
	const char *profile, unsigned start, unsigned places)
{
	size_t used = strlen(text);

	if (used)
		text[--used] = '\0';
	snprintf(text + used, size - used,
		"%s{\"containerIndex\":%u,\"deviceIndex\":%u,\"gpuUUID\":\"%s\",\"profile\":\"%s\","
		"\"placement\":{\"start\":%u,\"size\":%u}}]",
		used ? "," : "[", container, device, cut.gpus[gpu], profile, start, places);
}

json_t *cut_make_pod(const char *name, const char *slots, const char *instances, unsigned count)
{
	char uid[64];
	json_t *containers = json_array(), *annotations, *pod;

	snprintf(uid, sizeof(uid), "%s%.1s", CUT_UID, name);
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			containers, json_pack("{s:s+,s:{s:o}}", "name", "c", i ? "b" : "a",
					    "resources", "limits", json_loads(ONE, 0, NULL)));
	annotations = json_pack("{s:s,s:s,s:s,s:s,s:s}", "hami.io/vgpu-node", STAGE_NODE,
		"hami.io/bind-time", "1", CUT_PHASE, "allocating", "hami.io/vgpu-devices-allocated",
		slots, "hami.io/vgpu-devices-to-allocate", slots);
	if (instances)
		json_object_set_new(annotations, INSTANCES_ANNOTATION, json_string(instances));
	pod = json_pack("{s:{s:s,s:s,s:s,s:s,s:o},s:{s:s,s:o},s:{s:s}}", "metadata", "name", name,
		"namespace", "default", "uid", uid, "creationTimestamp", "2026-11-22T00:00:00Z",
		"annotations", annotations, "spec", "nodeName", STAGE_NODE, "containers",
		containers, "status", "phase", "Pending");
	assert_non_null(pod);
	return pod;
}

void cut_bind_pod(const char *name, json_t *pod)
{
	char lock[STAGE_PATH_BYTES];

	snprintf(lock, sizeof(lock), "2026-11-22T00:00:00Z,default,%s", name);
	apiserver_annotate_node(&stage.api, STAGE_LOCK, lock);
	apiserver_put_pod(&stage.api, pod);
}

/* A pod of one container with one instance. */
void cut_bind(const char *name, int gpu, const char *profile, unsigned start, unsigned places)
{
	char slots[256], text[1024] = "";

	snprintf(slots, sizeof(slots), "%s,NVIDIA,1000,10:;", cut.gpus[gpu]);
	cut_reserve(text, sizeof(text), 0, 0, gpu, profile, start, places);
	cut_bind_pod(name, cut_make_pod(name, slots, text, 1));
}

void cut_allocate(int gpu, unsigned count, struct stage_answer *answer)
{
	static char texts[8][128];
	const char *ids[8];

	for (unsigned i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s-%u", cut.gpus[gpu], i);
		ids[i] = texts[i];
	}
	stage_allocate(ids, count, answer);
}

void cut_assert_list(const struct stage_answer *answer, const char *expected)
{
	if (answer->status)
		fail_msg("refused: %s", answer->words);
	assert_string_equal(stage_env(answer, "NVIDIA_VISIBLE_DEVICES"), expected);
}

/* The kubelet asks, and the pod runs with the instance that it has reserved. */
void cut_serve(const char *name, int gpu, const char *profile, unsigned start)
{
	struct stage_answer answer;

	cut_allocate(gpu, 1, &answer);
	cut_assert_list(&answer, cut_instance(gpu, profile, start));
	assert_memory_equal(stage_env(&answer, "NVIDIA_VISIBLE_DEVICES"), "MIG-", 4);
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, name, "Running");
	stage_tell();
}

void cut_refuse(int gpu, const char *words)
{
	struct stage_answer answer;

	cut_allocate(gpu, 1, &answer);
	assert_int_equal(answer.status, RPC_FAILED_PRECONDITION);
	if (!strstr(answer.words, words))
		fail_msg("'%s' is not in: %s", words, answer.words);
	stage_answer_free(&answer);
}

bool cut_is_annotated(const char *pod, const char *key, const char *expected)
{
	_cleanup_free_ char *text = apiserver_annotation(&stage.api, pod, key);

	return text && expected ? strstr(text, expected) != NULL : !text && !expected;
}

static const char *awaited_pod, *awaited_key, *awaited_text;

static bool awaited_is_annotated(void)
{
	return cut_is_annotated(awaited_pod, awaited_key, awaited_text);
}

void cut_await_annotation(const char *pod, const char *key, const char *expected)
{
	awaited_pod = pod;
	awaited_key = key;
	awaited_text = expected;
	stage_await(awaited_is_annotated, 30);
}

static unsigned wanted_on[2];

static bool counts_are_right(void)
{
	return cut_count(0) == wanted_on[0] && cut_count(1) == wanted_on[1];
}

void cut_await_counts(unsigned first, unsigned second, unsigned most_s)
{
	wanted_on[0] = first;
	wanted_on[1] = second;
	stage_await(counts_are_right, most_s);
}
