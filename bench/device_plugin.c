/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vgpu-device-plugin costs on a node: memory, idle time, Allocate, restarts of the kubelet. It runs before a kubelet and an API
 * server of the test's. The arguments are the program, a library to install, the board, and how many Allocates, restarts and
 * seconds without work.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/plugin/stage.h"
#include "tests/unit/cmocka_ready.h"

#define LIMITS \
	"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"3000\",\"nvidia.com/gpucores\":\"30\"}"
#define MOST 100000

static const char *program, *library, *board;
static unsigned allocates, restarts, idle_s;
static double times_ms[MOST];

static unsigned long resident_kib(void)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", stage.plugin);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "VmRSS:", 6))
			kib = strtoul(line + 6, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static unsigned open_files(void)
{
	char path[64];
	unsigned count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", stage.plugin);
	folder = opendir(path);
	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/* Of all threads, in ns. */
static unsigned long long busy_ns(void)
{
	char path[128];
	unsigned long long sum = 0, one;
	struct dirent *e;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", stage.plugin);
	folder = opendir(path);
	while (folder && (e = readdir(folder))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", stage.plugin,
			e->d_name);
		file = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (file && fscanf(file, "%llu", &one) == 1)
			sum += one;
		if (file)
			fclose(file);
	}
	if (folder)
		closedir(folder);
	return sum;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_times(const char *what, unsigned count)
{
	if (!count)
		return;
	qsort(times_ms, count, sizeof(*times_ms), compare);
	printf("%s: median %.2f ms, p99 %.2f ms, most %.2f ms (%u)\n", what, times_ms[count / 2],
		times_ms[count * 99 / 100], times_ms[count - 1], count);
}

static void take_nothing(void *context, const void *message, size_t bytes)
{
}

static void call_ends(void *context, int status, const char *words)
{
	*(bool *)context = true;
}

/* A kubelet keeps its connection, and this one makes one for each call: so much of each Allocate is the bench's. */
static void measure_connections(void)
{
	static const struct rpc_listener listener = {take_nothing, call_ends};

	for (unsigned i = 0; i < allocates; i++) {
		uint64_t began_ns = clock_now_ns();
		struct rpc_request *request;
		bool is_done = false;

		assert_int_equal(rpc_send(stage.rpc, stage_path(stage.endpoint),
					 "/v1beta1.DevicePlugin/GetDevicePluginOptions", "", 0,
					 10000000000u, &listener, &is_done, &request),
			0);
		stage_wait(&is_done, 10);
		times_ms[i] = (double)(clock_now_ns() - began_ns) / 1e6;
		stage_run(20);
	}
	print_times("an empty call with its connection", allocates);
}

/* From the kubelet's request to the plugin's answer; the API server is on this machine. */
static void measure_allocates(void)
{
	char name[32], uid[64], slot[256], id[128];
	const char *ids[] = {id};
	unsigned devices = (unsigned)stage.list->n_devices / 10;

	for (unsigned i = 0; i < allocates; i++) {
		const char *first = stage.list->devices[i % devices * 10]->id;
		struct stage_answer answer;
		uint64_t began_ns;

		snprintf(name, sizeof(name), "p%u", i);
		snprintf(uid, sizeof(uid), "8f3c1f0e-2b7a-4a61-9d0f-%012u", i);
		snprintf(id, sizeof(id), "%s", first);
		snprintf(slot, sizeof(slot), "%.*s,NVIDIA,3000,30:;",
			(int)(strrchr(first, '-') - first), first);
		stage_bind(name, uid, slot, LIMITS);
		stage_run(20); /* as the scheduler and the kubelet take */
		began_ns = clock_now_ns();
		stage_allocate(ids, 1, &answer);
		times_ms[i] = (double)(clock_now_ns() - began_ns) / 1e6;
		if (answer.status)
			fail_msg("%s", answer.words);
		stage_answer_free(&answer);
		stage_unbind(name, "Succeeded");
	}
	print_times("Allocate", allocates);
}

static void measure_restarts(void)
{
	unsigned files = open_files();
	unsigned long kib = resident_kib();

	for (unsigned i = 0; i < restarts; i++) {
		uint64_t began_ns;

		stage_restart_kubelet();
		began_ns = clock_now_ns();
		stage_wait(&stage.was_registered, 10);
		times_ms[i] = (double)(clock_now_ns() - began_ns) / 1e6;
		stage_watch();
		if (i == restarts / 10) { /* what gRPC keeps is there by then */
			stage_run(1000);
			kib = resident_kib();
			files = open_files();
		}
	}
	stage_run(2000);
	print_times("registered again after a restart of the kubelet", restarts);
	printf("after a tenth of the restarts %.1f MiB and %u files, after all %.1f MiB and %u\n",
		(double)kib / 1024, files, (double)resident_kib() / 1024, open_files());
}

static void measure(void **state)
{
	uint64_t began_ns;
	unsigned long long busy;

	setenv("VGPU_SIM_BOARD", board, 1);
	stage_configure("", NULL);
	began_ns = clock_now_ns();
	stage_start(NULL);
	stage_watch();
	printf("%zu slices are listed %.0f ms after the start\n", stage.list->n_devices,
		(double)(clock_now_ns() - began_ns) / 1e6);
	stage_run(2000);
	printf("resident %.1f MiB\n", (double)resident_kib() / 1024);
	busy = busy_ns();
	began_ns = clock_now_ns();
	sleep(idle_s);
	printf("without work %.3f %% of a core over %u s\n",
		100 * (double)(busy_ns() - busy) / (double)(clock_now_ns() - began_ns), idle_s);
	measure_connections();
	measure_allocates();
	printf("resident %.1f MiB\n", (double)resident_kib() / 1024);
	measure_restarts();
	assert_int_equal(stage_stop(SIGTERM), 0);
}

static int setup(void **state)
{
	return stage_begin(state, program, library);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(measure, setup, stage_end),
	};

	if (argc != 7)
		return 2;
	program = argv[1];
	library = argv[2];
	board = argv[3];
	allocates = (unsigned)strtoul(argv[4], NULL, 10) % MOST;
	restarts = (unsigned)strtoul(argv[5], NULL, 10) % MOST;
	idle_s = (unsigned)strtoul(argv[6], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
