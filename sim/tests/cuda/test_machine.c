/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, processes that share a card, and how they end. */
#include "sim/tests/cuda/child.h"
#include "tests/unit/overlay.h"

#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_primary_context_lives_from_retain_to_release)
{
	CUcontext context, again;
	CUdeviceptr p;
	unsigned int flags;
	int is_active;

	context = child_context();
	OK(cuMemAlloc_v2(&p, 256 * MiB));
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(again == context);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	EQUAL(child_shown_mib(), 518 + 256);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	EQUAL(child_shown_mib(), 0);
	EQUAL(child_used_mib(), 3);
	EQUAL(cuMemFree_v2(p), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(again == context);
	OK(cuMemAlloc_v2(&p, 100));
	OK(cuMemAlloc_v2(&p, 100 * MiB));
	OK(cuDevicePrimaryCtxReset_v2(0));
	EQUAL(child_shown_mib(), 0);
	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
	EQUAL(is_active, 0);
}

TEST(a_created_context_takes_its_own_and_gives_all_back)
{
	CUcontext context, current;
	CUdeviceptr p;
	CUdevice device;

	child_context();
	OK(cuCtxCreate_v2(&context, 0, 0));
	EQUAL(child_shown_mib(), 2 * 518);
	OK(cuMemAlloc_v2(&p, 100 * MiB));
	OK(cuCtxGetDevice_v2(&device, context));
	OK(cuCtxPopCurrent_v2(&current));
	CHECK(current == context);
	OK(cuCtxPushCurrent_v2(context));
	OK(cuCtxDestroy_v2(context));
	EQUAL(child_shown_mib(), 518);
	EQUAL(cuCtxSetCurrent(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuMemAlloc_v2(&p, 100));
}

static int ready_fds[2];

static void hold_a_gib_for_ever(void)
{
	CUdeviceptr p;

	child_context();
	OK(cuMemAlloc_v2(&p, 1024 * MiB));
	CHECK(write(ready_fds[1], "x", 1) == 1);
	pause();
}

static int start_holder(void)
{
	char byte;
	int pid;

	CHECK(pipe(ready_fds) == 0);
	pid = child_start(hold_a_gib_for_ever);
	CHECK(read(ready_fds[0], &byte, 1) == 1);
	return pid;
}

TEST(processes_share_a_card_and_a_killed_one_gives_back)
{
	CUdeviceptr p, q;
	size_t free_bytes, total_bytes;
	int pid = start_holder();

	child_context();
	EQUAL(child_used_mib(), 2 * 526 + 1024 + 1);
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	CHECK((total_bytes - free_bytes) / MiB > 2 * 518 + 1024);
	free_bytes = free_bytes / (2 * MiB) * (2 * MiB);
	OK(cuMemAlloc_v2(&p, free_bytes));
	EQUAL(cuMemAlloc_v2(&q, 512 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	kill(pid, SIGKILL);
	child_wait(pid, SIGKILL);
	OK(cuMemAlloc_v2(&q, 512 * MiB));
}

TEST(truth_is_told_by_tag_with_the_highest_mark)
{
	struct machine_truth truth;
	CUdeviceptr p;
	int pid = start_holder();

	setenv("VGPU_SIM_TAG", "other", 1);
	child_context();
	OK(cuMemAlloc_v2(&p, 64 * MiB));
	OK(cuMemFree_v2(p));
	EQUAL(machine_read_truth(child_machine(), "other", 0, &truth), 0);
	EQUAL(truth.held_bytes / MiB, 518);
	EQUAL(truth.peak_held_bytes / MiB, 518 + 64);
	EQUAL(truth.process_count, 1);
	EQUAL(machine_read_truth(child_machine(), "test", 0, &truth), 0);
	EQUAL(truth.held_bytes / MiB, 518 + 1024);
	kill(pid, SIGKILL);
	child_wait(pid, SIGKILL);
	EQUAL(machine_read_truth(child_machine(), "test", 0, &truth), 0);
	EQUAL(truth.held_bytes, 0);
	EQUAL(truth.peak_held_bytes / MiB, 518 + 1024);
	machine_reset_peaks(child_machine());
	EQUAL(machine_read_truth(child_machine(), "test", 0, &truth), 0);
	EQUAL(truth.peak_held_bytes, 0);
	EQUAL(machine_read_truth(child_machine(), "nobody", 0, &truth), 0);
	EQUAL(truth.held_bytes, 0);
}

static void churn_for_ever(void)
{
	CUdeviceptr p[8];

	child_context();
	for (;;) {
		for (int i = 0; i < 8; i++)
			OK(cuMemAlloc_v2(&p[i], (size_t)(i + 1) * MiB));
		for (int i = 0; i < 8; i++)
			OK(cuMemFree_v2(p[i]));
	}
}

TEST(killing_processes_anywhere_leaves_the_sums_right)
{
	for (int round = 0; round < 30; round++) {
		int first = child_start(churn_for_ever);
		int second = child_start(churn_for_ever);

		/* Long enough to be in the middle of it, and at another place each time. */
		usleep(3000 + (unsigned int)round * 137);
		kill(first, SIGKILL);
		kill(second, SIGKILL);
		child_wait(first, SIGKILL);
		child_wait(second, SIGKILL);
		EQUAL(child_used_mib(), 0);
	}
	child_context();
	EQUAL(child_used_mib(), 526);
}

TEST(closing_all_descriptors_does_not_end_a_process)
{
	CUdeviceptr p;

	child_context();
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	EQUAL(child_shown_mib(), 518);
	OK(cuMemAlloc_v2(&p, 4 * MiB));
	EQUAL(child_shown_mib(), 522);
}

static void has_no_driver(void)
{
	CUdeviceptr p;
	int count;

	EQUAL(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_NOT_INITIALIZED);
	EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(a_forked_child_has_no_driver)
{
	CUdeviceptr p;

	child_context();
	child_wait(child_start(has_no_driver), 0);
	OK(cuMemAlloc_v2(&p, 100));
	EQUAL(child_shown_mib(), 520);
}

static int orphan_fds[2];
static void fork_and_die(void)
{
	char byte;

	child_context();
	if (fork() == 0) {
		close(orphan_fds[1]);
		/* Lives until the test closes its end. */
		if (read(orphan_fds[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	raise(SIGKILL);
}

/* It has the driver's files open. */
TEST(a_dead_parents_memory_stays_while_its_child_lives)
{
	int pid;

	CHECK(pipe(orphan_fds) == 0);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	pid = child_start(fork_and_die);
	child_wait(pid, SIGKILL);
	CHECK(child_used_mib() >= 518);
	close(orphan_fds[1]);
	CHECK(wait(NULL) > 0);
	EQUAL(child_used_mib(), 0);
}

static int count_visible(void)
{
	int count = -1;

	return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

static const char *visible;
static int visible_count, visible_first;
static void check_visible(void)
{
	setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	EQUAL(count_visible(), visible_count);
	if (visible_count == 0) {
		EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
	} else {
		char id[16], expected[16];
		unsigned int bus, slot;

		board_pci(machine_board(child_machine()), visible_first, &bus, &slot);
		snprintf(expected, sizeof(expected), "0000:%02X:%02X.0", bus, slot);
		OK(cuDeviceGetPCIBusId(id, sizeof(id), 0));
		EQUAL(strcmp(id, expected), 0);
	}
}

TEST(visible_devices_are_chosen_as_by_the_driver)
{
	char uuid[MACHINE_UUID_SIZE], other[MACHINE_UUID_SIZE];
	char pair[2 * MACHINE_UUID_SIZE + 1], mixed[2 * MACHINE_UUID_SIZE + 1];
	uint8_t bytes[16];
	struct {
		const char *list;
		int count, first;
	} rows[] = {
		{"0", 1, 0},
		{"1", 1, 1},
		{"3,1", 2, 3},
		{"0,9,1", 1, 0},
		{"9,0", 0, 0},
		{"1,1", 0, 0},
		{"", 0, 0},
		{"-1", 0, 0},
		{"0,-1,2", 1, 0},
		{"no", 0, 0},
		{uuid, 1, 2},
		{pair, 2, 2},
		{mixed, 1, 2},
		{"GPU-", 0, 0},
		{"MIG-0", 0, 0},
	};

	setenv("VGPU_SIM_BOARD", "h200x8", 1);
	board_uuid(machine_board(child_machine()), 2, bytes);
	machine_uuid_text(bytes, uuid);
	board_uuid(machine_board(child_machine()), 0, bytes);
	machine_uuid_text(bytes, other);
	snprintf(pair, sizeof(pair), "%s,%s", uuid, other);
	snprintf(mixed, sizeof(mixed), "%s,0", uuid);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		visible = rows[i].list;
		visible_count = rows[i].count;
		visible_first = rows[i].first;
		child_wait(child_start(check_visible), 0);
	}
	EQUAL(count_visible(), 8);
}

TEST(cards_that_the_runtime_left_out_are_not_counted)
{
	setenv("VGPU_SIM_BOARD", "h200x8", 1);
	setenv("NVIDIA_VISIBLE_DEVICES", "3,1", 1);
	visible = "1,0";
	visible_count = 2;
	visible_first = 3;
	child_wait(child_start(check_visible), 0);
	visible = "2";
	visible_count = 0;
	child_wait(child_start(check_visible), 0);
}

TEST(a_machine_on_an_overlay_is_refused_with_the_remedy)
{
	char folder[] = "/tmp/vgpu-sim-overlay-XXXXXX", path[64], why[512] = "";
	struct machine *machine;
	const char *reason;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/machine", folder);
	/* Without the right to mount there is nothing to see. */
	if (overlay_mount(folder, &reason)) {
		EQUAL(machine_open(path, NULL, &machine, why, sizeof(why)), MACHINE_E_FOREIGN);
		CHECK(strstr(why, "on an overlay") && strstr(why, "VGPU_SIM_STATE"));
		CHECK(access(path, F_OK) != 0);
		overlay_unmount("/tmp", folder + strlen("/tmp/"));
	}
	rmdir(folder);
}

TEST(uuids_are_those_of_the_board)
{
	uint8_t bytes[16];
	CUuuid uuid;

	OK(cuInit(0));
	board_uuid(machine_board(child_machine()), 0, bytes);
	OK(cuDeviceGetUuid_v2(&uuid, 0));
	EQUAL(memcmp(bytes, uuid.bytes, 16), 0);
}

static void refuses_the_file(void)
{
	/* The complaint on standard error is not for the log of the tests. */
	int null_fd = open("/dev/null", O_WRONLY);

	CHECK(dup2(null_fd, 2) == 2);
	EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
}

TEST(foreign_and_broken_files_are_refused)
{
	const char *path = getenv("VGPU_SIM_STATE");
	struct machine *machine;
	char why[256];
	int fd;

	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && write(fd, "hello", 5) == 5);
	EQUAL(machine_open(path, NULL, &machine, why, sizeof(why)), MACHINE_E_FOREIGN);
	CHECK(strstr(why, path));
	child_wait(child_start(refuses_the_file), 0);
	unlink(path);
	child_machine();
	fd = open(path, O_RDWR);
	CHECK(fd >= 0 && pwrite(fd, "xxxx", 4, 0) == 4);
	EQUAL(machine_open(path, NULL, &machine, why, sizeof(why)), MACHINE_E_FOREIGN);
	CHECK(ftruncate(fd, 100) == 0);
	EQUAL(machine_open(path, NULL, &machine, why, sizeof(why)), MACHINE_E_FOREIGN);
}

static void join_at_once(void)
{
	child_context();
}

TEST(many_processes_may_make_the_machine_together)
{
	int pids[8];

	for (int i = 0; i < 8; i++)
		pids[i] = child_start(join_at_once);
	for (int i = 0; i < 8; i++)
		child_wait(pids[i], 0);
	EQUAL(child_used_mib(), 0);
}

static void *churn_in_thread(void *context)
{
	CUdeviceptr p[16];
	CUstream s;

	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 16; i++)
			OK(i % 2 ? cuMemAlloc_v2(&p[i], (size_t)i * 200000)
				 : cuMemAllocAsync(&p[i], (size_t)(i + 1) * 100000, s));
		OK(cuMemsetD8Async(p[0], 1, 100, s));
		for (int i = 0; i < 16; i++)
			OK(i % 2 ? cuMemFree_v2(p[i]) : cuMemFreeAsync(p[i], s));
		OK(cuStreamSynchronize(s));
	}
	OK(cuStreamDestroy_v2(s));
	return NULL;
}

TEST(threads_allocate_and_free_together)
{
	CUcontext context = child_context();
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, churn_in_thread, context) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	OK(cuCtxSynchronize());
	EQUAL(child_kind_mib(MACHINE_SMALL), 0);
	EQUAL(child_kind_mib(MACHINE_PLAIN), 0);
	EQUAL(child_kind_mib(MACHINE_POOL), 0);
}

TEST(the_last_detach_destroys_a_context)
{
	CUcontext primary, context, same;

	primary = child_context();
	EQUAL(cuCtxDetach(primary), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate_v2(&context, 0, 0));
	OK(cuCtxAttach(&same, 0));
	CHECK(same == context);
	EQUAL(cuCtxAttach(&same, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxDetach(context));
	EQUAL(child_shown_mib(), 2 * 518);
	OK(cuCtxDetach(context));
	EQUAL(child_shown_mib(), 518);
	OK(cuCtxGetCurrent(&same));
	CHECK(same == primary);
	EQUAL(cuCtxDetach(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static int report_fds[2], go_fds[2];

static void hold_and_read_back(void)
{
	unsigned char byte = 0;
	CUdeviceptr p;

	child_context();
	OK(cuMemAlloc_v2(&p, 1024 * MiB));
	OK(cuMemsetD8_v2(p, 7, 1024));
	CHECK(write(report_fds[1], "h", 1) == 1);
	CHECK(read(go_fds[0], &byte, 1) == 1);
	OK(cuMemcpyDtoH_v2(&byte, p + 1000, 1));
	EQUAL(byte, 7);
	CHECK(write(report_fds[1], "r", 1) == 1);
	CHECK(read(go_fds[0], &byte, 1) == 1);
}

static CUprocessState state_of(int pid)
{
	CUprocessState state;

	OK(cuCheckpointProcessGetState(pid, &state));
	return state;
}

TEST(a_checkpointed_process_holds_nothing_and_waits)
{
	struct machine_truth truth;
	struct pollfd report = {.events = POLLIN};
	uint64_t before;
	char byte;
	int pid, tid;

	CHECK(pipe(report_fds) == 0 && pipe(go_fds) == 0);
	pid = child_start(hold_and_read_back);
	CHECK(read(report_fds[0], &byte, 1) == 1);
	child_context();
	before = child_used_mib();
	EQUAL(state_of(pid), CU_PROCESS_STATE_RUNNING);
	EQUAL(cuCheckpointProcessCheckpoint(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	EQUAL(cuCheckpointProcessLock(1, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuCheckpointProcessLock(pid, NULL));
	EQUAL(state_of(pid), CU_PROCESS_STATE_LOCKED);
	CHECK(write(go_fds[1], "g", 1) == 1);
	report.fd = report_fds[0];
	EQUAL(poll(&report, 1, 50), 0);
	OK(cuCheckpointProcessCheckpoint(pid, NULL));
	EQUAL(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
	CHECK(before - child_used_mib() >= 1024 + 518);
	EQUAL(child_used_mib(), 518 + 8);
	EQUAL(machine_read_truth(child_machine(), "test", 0, &truth), 0);
	EQUAL(truth.held_bytes, 518 * MiB);
	OK(cuCheckpointProcessRestore(pid, NULL));
	EQUAL(child_used_mib(), before);
	EQUAL(poll(&report, 1, 50), 0);
	OK(cuCheckpointProcessGetRestoreThreadId(pid, &tid));
	OK(cuCheckpointProcessUnlock(pid, NULL));
	CHECK(read(report_fds[0], &byte, 1) == 1);
	CHECK(write(go_fds[1], "g", 1) == 1);
	child_wait(pid, 0);
	EQUAL(cuCheckpointProcessLock(pid, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_process_that_was_restored_without_room_never_comes_back)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr p;
	char byte;
	int pid;

	CHECK(pipe(report_fds) == 0 && pipe(go_fds) == 0);
	pid = child_start(hold_and_read_back);
	CHECK(read(report_fds[0], &byte, 1) == 1);
	child_context();
	OK(cuCheckpointProcessLock(pid, NULL));
	OK(cuCheckpointProcessCheckpoint(pid, NULL));
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	OK(cuMemAlloc_v2(&p, free_bytes - 1000 * MiB));
	EQUAL(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
	OK(cuMemFree_v2(p));
	EQUAL(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_OPERATING_SYSTEM);
	EQUAL(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_OPERATING_SYSTEM);
	EQUAL(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
	EQUAL(child_used_mib(), 518 + 8);
	CHECK(kill(pid, SIGKILL) == 0);
	child_wait(pid, SIGKILL);
	EQUAL(child_used_mib(), 518 + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_primary_context_lives_from_retain_to_release),
		cmocka_unit_test(a_created_context_takes_its_own_and_gives_all_back),
		cmocka_unit_test(processes_share_a_card_and_a_killed_one_gives_back),
		cmocka_unit_test(truth_is_told_by_tag_with_the_highest_mark),
		cmocka_unit_test(killing_processes_anywhere_leaves_the_sums_right),
		cmocka_unit_test(closing_all_descriptors_does_not_end_a_process),
		cmocka_unit_test(a_forked_child_has_no_driver),
		cmocka_unit_test(a_dead_parents_memory_stays_while_its_child_lives),
		cmocka_unit_test(visible_devices_are_chosen_as_by_the_driver),
		cmocka_unit_test(cards_that_the_runtime_left_out_are_not_counted),
		cmocka_unit_test(a_machine_on_an_overlay_is_refused_with_the_remedy),
		cmocka_unit_test(uuids_are_those_of_the_board),
		cmocka_unit_test(foreign_and_broken_files_are_refused),
		cmocka_unit_test(many_processes_may_make_the_machine_together),
		cmocka_unit_test(threads_allocate_and_free_together),
		cmocka_unit_test(a_checkpointed_process_holds_nothing_and_waits),
		cmocka_unit_test(a_process_that_was_restored_without_room_never_comes_back),
		cmocka_unit_test(the_last_detach_destroys_a_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
