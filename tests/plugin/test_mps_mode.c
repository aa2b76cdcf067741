/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices in mode mps: the life of their control daemons under the program, and what their clients are told. The arguments
 * are the program, a library to install and the simulated nvidia-cuda-mps-control.
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mps/daemon.h"
#include "tests/plugin/stage.h"
#include "tests/plugin/vectors.h"
#include "tests/unit/cmocka_ready.h"

#define UID   "8f3c1f0e-2b7a-4a61-9d0f-00000000000"
#define NODE  "{\"nodeconfig\":[{\"name\":\"node1\",\"operatingmode\":\"mps\"}]}"
#define MIXED "{\"nodeconfig\":[{\"name\":\"node1\",\"devicemodes\":{\"mps\":{\"index\":[0]}}}]}"
#define LIMITS \
	"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"3000\",\"nvidia.com/gpucores\":\"30\"}"
#define SLOT0 VECTOR_GPU0 ",NVIDIA,3000,30:;"

static const char *program, *library, *control;
static const char *ids[] = {VECTOR_GPU0 "-0", VECTOR_GPU1 "-0"};

static void start(void)
{
	char flag[STAGE_PATH_BYTES];
	const char *flags[] = {flag, NULL};

	snprintf(flag, sizeof(flag), "--mps-control=%s", control);
	stage_start(flags);
}

static char *pipe_of(const char *uuid)
{
	static char path[STAGE_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/mps/%s/pipe", stage.folder, uuid);
	return path;
}

/* 0: there is none. */
static pid_t daemon_of(const char *uuid)
{
	char path[STAGE_PATH_BYTES + 64];
	_cleanup_file_ FILE *file = NULL;
	int pid = 0;

	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", pipe_of(uuid));
	file = fopen(path, "r");
	if (!file || fscanf(file, "%d", &pid) != 1 || !mps_daemon_is_alive(pipe_of(uuid)))
		return 0;
	return pid;
}

static bool is_there(void)
{
	return daemon_of(VECTOR_GPU0);
}

static bool is_gone(void)
{
	return !daemon_of(VECTOR_GPU0);
}

/* The share that the container with this UID was given. */
static char *share_of(const char *uid)
{
	static char text[2048];
	char path[STAGE_PATH_BYTES + 64];
	_cleanup_file_ FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/state/shares/%s_a/share", stage.folder, uid);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	return text;
}

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("'%s' is not in: %s", words, text);
}

static void serve(const char *name, const char *uid)
{
	struct stage_answer answer;

	stage_bind(name, uid, SLOT0, LIMITS);
	stage_allocate(ids, 1, &answer);
	if (answer.status)
		fail_msg("%s", answer.words);
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, name, "Running");
	stage_tell();
}

static void a_container_is_told_of_its_daemon(void **state)
{
	struct stage_answer answer;
	const V1beta1__Mount *mount;
	struct stat pipes, memory;

	stage_configure("", NODE);
	start();
	assert_true(is_gone()); /* nobody needs it */
	stage_bind("p", UID "1", SLOT0, LIMITS);
	stage_allocate(ids, 1, &answer);
	if (answer.status)
		fail_msg("%s", answer.words);
	assert_true(is_there());
	assert_string_equal(stage_env(&answer, "CUDA_MPS_PIPE_DIRECTORY"), "/run/vgpu-mps");
	assert_string_equal(stage_env(&answer, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "30");
	assert_string_equal(stage_env(&answer, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "0=3000M");
	mount = stage_mount(&answer, "/run/vgpu-mps");
	assert_non_null(mount);
	assert_string_equal(mount->host_path, pipe_of(VECTOR_GPU0));
	assert_true(mount->read_only);
	mount = stage_mount(&answer, "/dev/shm");
	assert_non_null(mount);
	assert_false(mount->read_only);
	assert_int_equal(stat(mount->host_path, &memory), 0);
	assert_int_equal(memory.st_mode & 07777, 01777);
	assert_int_equal(stat(pipe_of(VECTOR_GPU0), &pipes), 0);
	assert_int_equal(pipes.st_mode & 07777, 0755);
	assert_null(stage_mount(&answer, "/run/vgpu-turns"));
	assert_says(share_of(UID "1"), "\nmps /run/vgpu-mps\n");
	assert_says(share_of(UID "1"), " memory 3145728000 cores 30");
	assert_null(strstr(share_of(UID "1"), "turns"));
	stage_answer_free(&answer);
	stage_unbind("p", "Failed");
}

static void two_containers_have_one_daemon_and_devices_one_each(void **state)
{
	struct stage_answer answer;
	pid_t first;

	stage_configure("", NODE);
	start();
	serve("p", UID "1");
	first = daemon_of(VECTOR_GPU0);
	serve("q", UID "2");
	assert_int_equal(daemon_of(VECTOR_GPU0), first);
	assert_int_equal(daemon_of(VECTOR_GPU1), 0);
	stage_bind("r", UID "3", VECTOR_GPU1 ",NVIDIA,3000,0:;",
		"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"3000\"}");
	stage_allocate(&ids[1], 1, &answer);
	if (answer.status)
		fail_msg("%s", answer.words);
	/* without a limit of cores it has all */
	assert_string_equal(stage_env(&answer, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "100");
	assert_true(daemon_of(VECTOR_GPU1) > 0 && daemon_of(VECTOR_GPU1) != first);
	stage_answer_free(&answer);
}

static void a_daemon_that_dies_is_started_again_where_its_clients_look_for_it(void **state)
{
	struct stat before, after;
	pid_t first;

	stage_configure("", NODE);
	start();
	serve("p", UID "1");
	first = daemon_of(VECTOR_GPU0);
	assert_int_equal(stat(pipe_of(VECTOR_GPU0), &before), 0);
	assert_int_equal(kill(first, SIGKILL), 0);
	stage_await(is_gone, 30);
	stage_await(is_there, 30);
	assert_int_not_equal(daemon_of(VECTOR_GPU0), first);
	/* containers have this folder mounted */
	assert_int_equal(stat(pipe_of(VECTOR_GPU0), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_true(stage_has_said("is started again"));
}

static void a_daemon_outlives_the_plugin_and_is_taken_over(void **state)
{
	static const int signals[] = {SIGTERM, SIGKILL};
	pid_t first;

	stage_configure("", NODE);
	start();
	serve("p", UID "1");
	first = daemon_of(VECTOR_GPU0);
	for (unsigned i = 0; i < 2; i++) {
		stage_stop(signals[i]);
		assert_int_equal(daemon_of(VECTOR_GPU0), first);
		start();
		stage_run(1500);
		assert_int_equal(daemon_of(VECTOR_GPU0), first);
	}
	/* and one that died meanwhile is there again, as after a restart of the machine */
	stage_stop(SIGKILL);
	assert_int_equal(kill(first, SIGKILL), 0);
	start();
	stage_await(is_there, 30);
}

static void a_daemon_without_clients_ends_with_the_plugin_or_before(void **state)
{
	stage_configure("", NODE);
	start();
	serve("p", UID "1");
	stage_unbind("p", "Succeeded");
	/* by then a container that was just made ready is known, or is not */
	stage_await(is_gone, 30);
	serve("q", UID "2");
	assert_true(is_there());
	stage_stop(SIGKILL);
	apiserver_delete_pod(&stage.api, "q");
	start();
	stage_await(is_gone, 30);
	serve("r", UID "3");
	stage_stop(SIGKILL);
	start();
	stage_tell(); /* it has no clients from before its own time */
	apiserver_delete_pod(&stage.api, "r");
	stage_tell();
	assert_true(is_there());
	assert_int_equal(stage_stop(SIGTERM), 0);
	assert_true(is_gone());
}

static void what_cannot_be_is_refused_in_words(void **state)
{
	struct stage_answer answer;

	stage_configure("", NODE);
	stage_start((const char *const[]){"--mps-control=/nowhere/mps", NULL});
	stage_bind("p", UID "1", SLOT0, LIMITS);
	stage_allocate(ids, 1, &answer);
	assert_int_not_equal(answer.status, 0);
	assert_says(answer.words, "/nowhere/mps: No such file or directory");
	stage_unbind("p", "Failed");
	stage_bind("q", UID "2", VECTOR_GPU0 ",NVIDIA,3000,30:" VECTOR_GPU1 ",NVIDIA,3000,30:;",
		"{\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem\":\"3000\","
		"\"nvidia.com/gpucores\":\"30\"}");
	stage_allocate(ids, 2, &answer);
	assert_int_not_equal(answer.status, 0);
	assert_says(answer.words, "with MPS a container can have one");
	stage_unbind("q", "Failed");
	stage_stop(SIGTERM);
	/* one that does not start says why */
	stage_write("false", "#!/bin/sh\necho no licence today\nexit 1\n");
	chmod(stage_path("false"), 0755);
	control = strdup(stage_path("false"));
	start();
	stage_bind("r", UID "3", SLOT0, LIMITS);
	stage_allocate(ids, 1, &answer);
	assert_int_not_equal(answer.status, 0);
	assert_says(answer.words, "the MPS control daemon does not start: no licence today");
	free((char *)control);
}

static bool is_registered(void)
{
	_cleanup_free_ char *text = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);

	return text;
}

static void other_devices_of_the_node_are_divided_by_time(void **state)
{
	_cleanup_free_ char *registered = NULL;
	struct stage_answer answer;

	stage_configure("", MIXED);
	start();
	stage_await(is_registered, 30);
	registered = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	assert_says(registered, "\"mode\":\"mps\"");
	assert_says(registered, "\"mode\":\"hami-core\"");
	stage_bind("p", UID "1", VECTOR_GPU1 ",NVIDIA,3000,30:;", LIMITS);
	stage_allocate(&ids[1], 1, &answer);
	if (answer.status)
		fail_msg("%s", answer.words);
	assert_null(stage_env(&answer, "CUDA_MPS_PIPE_DIRECTORY"));
	assert_non_null(stage_mount(&answer, "/run/vgpu-turns"));
	assert_int_equal(daemon_of(VECTOR_GPU1), 0);
	stage_answer_free(&answer);
}

static int setup(void **state)
{
	return stage_begin(state, program, library);
}

/* Whoever a test has left. */
static int teardown(void **state)
{
	stage_stop(SIGKILL);
	for (size_t i = 0; i < 2; i++) {
		pid_t daemon = daemon_of(i ? VECTOR_GPU1 : VECTOR_GPU0);

		if (daemon)
			kill(daemon, SIGTERM);
	}
	return stage_end(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A daemon has a /dev/shm of its own and would not find what tests have in this one. */
static int leave_shared_memory(void)
{
	const char *folder = getenv("TMPDIR");

	if (!folder || strncmp(folder, "/dev/shm", strlen("/dev/shm")) != 0)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", "/mnt", "tmpfs", 0, NULL) < 0)
		return -1;
	return setenv("TMPDIR", "/mnt", 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_container_is_told_of_its_daemon),
		TEST(two_containers_have_one_daemon_and_devices_one_each),
		TEST(a_daemon_that_dies_is_started_again_where_its_clients_look_for_it),
		TEST(a_daemon_outlives_the_plugin_and_is_taken_over),
		TEST(a_daemon_without_clients_ends_with_the_plugin_or_before),
		TEST(other_devices_of_the_node_are_divided_by_time),
		TEST(what_cannot_be_is_refused_in_words),
	};

	if (argc != 4)
		return 2;
	if (geteuid() != 0)
		return 77; /* skipped: a daemon's memory is mounted */
	if (leave_shared_memory() < 0) {
		fputs("skipped: a folder outside of /dev/shm is needed, and cannot be mounted\n",
			stderr);
		return 77;
	}
	program = argv[1];
	library = argv[2];
	control = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
