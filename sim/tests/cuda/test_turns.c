/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that take turns on a device, or run side by side as clients of MPS. */
#include "sim/tests/cuda/neighbour.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void work_and_tell(void)
{
	CUfunction function = begin();
	float ms;

	tell(&notes->ready);
	await(&notes->ready, 2);
	ms = time_work(function, 60, 5 * MS);
	IN_TIME(ms > 1.6f * 300 && ms < 2.4f * 300);
	/* The other's work is to the end of this one's. */
	tell(&notes->stop);
	await(&notes->stop, 2);
}

TEST(two_processes_get_half_each)
{
	int other;

	share_notes();
	other = child_start(work_and_tell);
	work_and_tell();
	child_wait(other, 0);
}

TEST(a_lone_process_runs_at_full_speed_after_others)
{
	CUfunction function;
	float ms;
	int pid;

	pid = start_neighbour();
	function = begin();
	ms = time_work(function, 1, 20 * MS);
	IN_TIME(ms > 32 && ms < 48);
	end_neighbour(pid);
	ms = time_work(function, 10, 10 * MS);
	/* The neighbour may be found to be gone only a moment after its end. */
	IN_TIME(ms >= 100 && ms < 180);
	ms = time_work(function, 10, 10 * MS);
	IN_TIME(ms > 99.9f && ms < 101);
}

TEST(time_between_events_includes_the_turns_of_others)
{
	CUfunction function;
	CUevent event[3];
	uint64_t began;
	float first, second, both;
	int pid;

	pid = start_neighbour();
	function = begin();
	for (int i = 0; i < 3; i++)
		OK(cuEventCreate(&event[i], 0));
	began = machine_now_ns();
	OK(cuEventRecord(event[0], NULL));
	spin(function, NULL, 30 * MS);
	OK(cuEventRecord(event[1], NULL));
	spin(function, NULL, 40 * MS);
	OK(cuEventRecord(event[2], NULL));
	NOT_YET(cuEventQuery(event[1]));
	OK(cuStreamSynchronize(NULL));
	CHECK(machine_now_ns() - began >= 130 * MS);
	OK(cuEventElapsedTime(&first, event[0], event[1]));
	OK(cuEventElapsedTime(&second, event[1], event[2]));
	OK(cuEventElapsedTime(&both, event[0], event[2]));
	IN_TIME(first > 50 && first < 70);
	IN_TIME(second > 70 && second < 90);
	IN_TIME(both > first + second - 0.1f && both < first + second + 0.1f);
	end_neighbour(pid);
}

TEST(streams_of_one_process_do_not_slow_each_other)
{
	const struct machine_snapshot *snap;
	CUfunction function;
	CUstream stream[3];
	uint64_t began;
	int pid;

	pid = start_neighbour();
	function = begin();
	for (int i = 0; i < 3; i++)
		OK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	began = look(MS)->device[0].busy_ns;
	for (int i = 0; i < 3; i++)
		spin(function, stream[i], 50 * MS);
	OK(cuCtxSynchronize());
	/* By the device's own count of work, for both processes. */
	CHECK(look(MS)->device[0].busy_ns - began >= 90 * MS);
	for (int i = 0; i < 3; i++)
		OK(cuStreamQuery(stream[i]));
	snap = look(MS);
	for (int i = 0; i < snap->process_count; i++) {
		if (snap->process[i].pid == getpid())
			CHECK(snap->process[i].device[0].busy_ns < 100 * MS);
	}
	end_neighbour(pid);
}

static uint64_t called_at;
static void note_time(void *unused)
{
	(void)unused;
	called_at = machine_now_ns();
}

TEST(host_functions_wait_for_the_turns_of_others)
{
	CUfunction function;
	uint64_t began;
	int pid;

	pid = start_neighbour();
	function = begin();
	began = machine_now_ns();
	spin(function, NULL, 30 * MS);
	OK(cuLaunchHostFunc(NULL, note_time, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(called_at - began >= 50 * MS);
	end_neighbour(pid);
}

TEST(half_of_the_time_shows_as_half_of_the_use)
{
	const struct machine_snapshot *snap;
	uint64_t end;
	CUfunction function;
	int pid;

	pid = start_neighbour();
	function = begin();
	for (int i = 0; i < 100; i++)
		spin(function, NULL, 100 * MS);
	end = machine_now_ns() + 200 * MS;
	while (machine_now_ns() < end)
		nap();
	snap = look(100 * MS);
	EQUAL(snap->process_count, 2);
	/* While it changes over, 0.15 ms each 2 ms, it works for nobody. */
	IN_TIME(snap->device[0].busy_permille >= 900 && snap->device[0].busy_permille < 960);
	for (int i = 0; i < 2; i++) {
		unsigned int permille = snap->process[i].device[0].busy_permille;

		IN_TIME(permille >= 400 && permille <= 600);
	}
	end_neighbour(pid);
}

/* A folder in which a daemon of MPS seems to be. */
static void become_client(const char *percent)
{
	static char folder[600], path[700];
	const char *state = getenv("VGPU_SIM_STATE");
	int fd;

	snprintf(folder, sizeof(folder), "%.*s/mps", (int)(strrchr(state, '/') - state), state);
	snprintf(path, sizeof(path), "%s/control", folder);
	mkdir(folder, 0700);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	close(fd);
	setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
}

static void no_client(void)
{
	char path[700];

	snprintf(path, sizeof(path), "%s/control", getenv("CUDA_MPS_PIPE_DIRECTORY"));
	unlink(path);
	rmdir(getenv("CUDA_MPS_PIPE_DIRECTORY"));
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

TEST(clients_of_mps_run_side_by_side)
{
	CUfunction function;
	float ms;
	int pid;

	become_client("50");
	pid = start_neighbour();
	function = begin();
	ms = time_work(function, 5, 20 * MS);
	IN_TIME(ms > 99.9f && ms < 102);
	end_neighbour(pid);
	no_client();
}

TEST(clients_of_mps_that_want_more_than_all_are_slowed)
{
	CUfunction function;
	float ms;
	int pid;

	become_client("");
	pid = start_neighbour();
	function = begin();
	ms = time_work(function, 5, 20 * MS);
	IN_TIME(ms > 195 && ms < 205);
	end_neighbour(pid);
	no_client();
}

TEST(a_client_of_mps_takes_turns_with_who_is_none)
{
	CUfunction function;
	float ms;
	int pid;

	become_client("50");
	pid = start_neighbour();
	no_client();
	function = begin();
	ms = time_work(function, 5, 20 * MS);
	IN_TIME(ms > 195 && ms < 225);
	end_neighbour(pid);
}

TEST(a_client_of_mps_has_its_own_limit_of_memory)
{
	CUdeviceptr p;

	become_client("100");
	setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "1=8G;0=1024M", 1);
	child_context();
	/* A context is in it. */
	EQUAL(cuMemAlloc_v2(&p, 600 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&p, 400 * MiB));
	EQUAL(cuMemAllocAsync(&p, 400 * MiB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	no_client();
}

TEST(the_limit_of_mps_is_for_its_clients_alone)
{
	CUdeviceptr p;

	setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G", 1);
	child_context();
	OK(cuMemAlloc_v2(&p, 600 * MiB));
}

TEST(without_slices_processes_run_side_by_side)
{
	static char path[600];
	const char *state = getenv("VGPU_SIM_STATE");
	CUfunction function;
	FILE *file;
	float ms;
	int pid;

	snprintf(path, sizeof(path), "%.*s/plain.board", (int)(strrchr(state, '/') - state), state);
	file = fopen(path, "w");
	CHECK(file);
	fputs("base = h200\ntime_slice_us = 0\n", file);
	fclose(file);
	setenv("VGPU_SIM_BOARD", path, 1);
	pid = start_neighbour();
	unlink(path);
	function = begin();
	ms = time_work(function, 1, MS);
	IN_TIME(ms > 1.95f && ms < 2.1f);
	end_neighbour(pid);
}

TEST(copies_and_fills_take_time_by_their_size)
{
	CUevent event[4];
	CUdeviceptr p, q;
	float fill, inside, outside;
	void *host;

	child_context();
	for (int i = 0; i < 4; i++)
		OK(cuEventCreate(&event[i], 0));
	OK(cuMemAlloc_v2(&p, 16 * MiB));
	OK(cuMemAlloc_v2(&q, 16 * MiB));
	OK(cuMemAllocHost_v2(&host, 16 * MiB));
	/* So that nothing of the host's own time comes between. */
	OK(cuMemsetD8Async(p, 0, 16 * MiB, NULL));
	OK(cuMemsetD8Async(q, 0, 16 * MiB, NULL));
	memset(host, 0, 16 * MiB);
	spin(begin(), NULL, 500 * MS);
	OK(cuEventRecord(event[0], NULL));
	OK(cuMemsetD8Async(p, 1, 16 * MiB, NULL));
	OK(cuEventRecord(event[1], NULL));
	OK(cuMemcpyDtoDAsync_v2(q, p, 16 * MiB, NULL));
	OK(cuEventRecord(event[2], NULL));
	OK(cuMemcpyDtoHAsync_v2(host, q, 16 * MiB, NULL));
	OK(cuEventRecord(event[3], NULL));
	OK(cuCtxSynchronize());
	OK(cuEventElapsedTime(&fill, event[0], event[1]));
	OK(cuEventElapsedTime(&inside, event[1], event[2]));
	OK(cuEventElapsedTime(&outside, event[2], event[3]));
	/* 4.8 TB/s, half of that, 20 GB/s. */
	CHECK(fill > 0.0034f && fill < 0.0036f);
	CHECK(inside > 0.0069f && inside < 0.0071f);
	CHECK(outside > 0.83f && outside < 0.85f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_get_half_each),
		cmocka_unit_test(a_lone_process_runs_at_full_speed_after_others),
		cmocka_unit_test(time_between_events_includes_the_turns_of_others),
		cmocka_unit_test(streams_of_one_process_do_not_slow_each_other),
		cmocka_unit_test(host_functions_wait_for_the_turns_of_others),
		cmocka_unit_test(half_of_the_time_shows_as_half_of_the_use),
		cmocka_unit_test(clients_of_mps_run_side_by_side),
		cmocka_unit_test(clients_of_mps_that_want_more_than_all_are_slowed),
		cmocka_unit_test(a_client_of_mps_takes_turns_with_who_is_none),
		cmocka_unit_test(a_client_of_mps_has_its_own_limit_of_memory),
		cmocka_unit_test(the_limit_of_mps_is_for_its_clients_alone),
		cmocka_unit_test(without_slices_processes_run_side_by_side),
		cmocka_unit_test(copies_and_fills_take_time_by_their_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
