/* SPDX-License-Identifier: Apache-2.0 */
/* A device waits for an event of another process, and not for one that is killed, stopped or checkpointed. */
#include "sim/machine/schedule.h"
#include "sim/tests/cuda/neighbour.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

TEST(work_of_a_process_that_was_killed_holds_nobody_up)
{
	CUfunction function;
	float ms;
	int pid;

	pid = start_neighbour();
	function = begin();
	EQUAL(kill(pid, SIGKILL), 0);
	child_wait(pid, SIGKILL);
	/* It is found to be dead within 50 ms of waiting, on a machine that is not too busy. */
	ms = time_work(function, 50, 10 * MS);
	IN_TIME(ms >= 500 && ms < 800);
	EQUAL(look(MS)->process_count, 1);
}

TEST(work_of_a_process_that_is_checkpointed_waits_and_holds_nobody_up)
{
	CUcheckpointLockArgs lock = {0};
	CUfunction function;
	uint64_t busy;
	float ms;
	int pid;

	pid = start_neighbour();
	function = begin();
	OK(cuCheckpointProcessLock(pid, &lock));
	/* What was given to the device before is still done. */
	ms = time_work(function, 2, 10 * MS);
	IN_TIME(ms > 32 && ms < 48);
	OK(cuCheckpointProcessCheckpoint(pid, NULL));
	ms = time_work(function, 2, 10 * MS);
	IN_TIME(ms > 19.9f && ms < 21);
	OK(cuCheckpointProcessRestore(pid, NULL));
	OK(cuCheckpointProcessUnlock(pid, NULL));
	busy = look(MS)->device[0].busy_ns;
	ms = time_work(function, 2, 10 * MS);
	IN_TIME(ms > 32 && ms < 48);
	CHECK(look(MS)->device[0].busy_ns - busy >= 32 * MS);
	end_neighbour(pid);
}

TEST(a_context_that_ends_takes_its_work_along)
{
	CUcontext context;
	CUfunction function;
	float ms;

	function = begin();
	OK(cuCtxCreate_v2(&context, 0, 0));
	function = load_spin();
	spin(function, NULL, 100000 * MS);
	OK(cuCtxDestroy_v2(context));
	function = begin();
	ms = time_work(function, 1, MS);
	IN_TIME(ms > 0.99f && ms < 2);
	CHECK(look(MS)->device[0].busy_ns < 10000 * MS);
}

static CUcontext ending;
static void *page;

static void *end_context(void *unused)
{
	OK(cuCtxDestroy_v2(ending));
	return unused;
}

static void end_meanwhile(int number)
{
	pthread_t thread;

	EQUAL(pthread_create(&thread, NULL, end_context, NULL), 0);
	EQUAL(pthread_join(thread, NULL), 0);
	EQUAL(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
}

TEST(a_launch_whose_context_ends_meanwhile_is_refused)
{
	struct sigaction action = {.sa_handler = end_meanwhile};
	uint64_t duration_ns = 100000 * MS;
	CUfunction function;
	void **params;
	float ms;

	begin();
	OK(cuCtxCreate_v2(&ending, 0, 0));
	function = load_spin();
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	params = page;
	params[0] = &duration_ns;
	EQUAL(mprotect(page, PAGE, PROT_NONE), 0);
	/* It reads its parameters in a page that may be read when its context has ended. */
	EQUAL(sigaction(SIGSEGV, &action, NULL), 0);
	EQUAL(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
	function = begin();
	ms = time_work(function, 1, MS);
	IN_TIME(ms > 0.99f && ms < 2);
	CHECK(look(MS)->device[0].busy_ns < 10000 * MS);
}

static void hold_the_lock(void)
{
	EQUAL(machine_join(child_machine()), 0);
	schedule_begin(child_machine(), 0);
	tell(&notes->ready);
	await(&notes->stop, 1);
	_exit(0);
}

static int start_lock_holder(void)
{
	int pid;

	share_notes();
	pid = child_start(hold_the_lock);
	await(&notes->ready, 1);
	return pid;
}

TEST(who_dies_between_two_steps_holds_nobody_up)
{
	CUfunction function;
	float ms;
	int pid = start_lock_holder();

	EQUAL(kill(pid, SIGKILL), 0);
	child_wait(pid, SIGKILL);
	function = begin();
	ms = time_work(function, 1, 20 * MS);
	IN_TIME(ms > 19.9f && ms < 21);
}

TEST(who_is_stopped_between_two_steps_holds_nobody_up_for_long)
{
	CUfunction function;
	uint64_t began;
	int pid = start_lock_holder();

	EQUAL(kill(pid, SIGSTOP), 0);
	function = begin();
	began = machine_now_ns();
	for (int i = 0; i < 1000; i++)
		spin(function, NULL, 1000);
	OK(cuCtxSynchronize());
	IN_TIME(machine_now_ns() - began < 5000 * MS);
	EQUAL(kill(pid, SIGCONT), 0);
	end_neighbour(pid);
}

/* Another process's work, and an event of it; the event is this process's again when it goes on. */
static void share_event(void)
{
	CUfunction function = begin();
	CUevent event;

	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	EQUAL(cuIpcGetEventHandle(NULL, event), CUDA_ERROR_INVALID_VALUE);
	OK(cuIpcGetEventHandle(&notes->event, event));
	tell(&notes->ready);
	await(&notes->stop, 1);
	spin(function, NULL, 400 * MS);
	OK(cuEventRecord(event, NULL));
	tell(&notes->ready);
	await(&notes->stop, 2);
	OK(cuCtxSynchronize());
	_exit(0);
}

TEST(work_waits_for_an_event_of_another_process)
{
	CUevent other, before, after;
	CUfunction function;
	float ms;
	int pid;

	share_notes();
	pid = child_start(share_event);
	function = begin();
	await(&notes->ready, 1);
	OK(cuEventCreate(&before, 0));
	OK(cuEventCreate(&after, 0));
	OK(cuIpcOpenEventHandle(&other, notes->event));
	/* Never recorded. */
	OK(cuEventQuery(other));
	OK(cuStreamWaitEvent(NULL, other, 0));
	OK(cuStreamQuery(NULL));
	tell(&notes->stop);
	await(&notes->ready, 2);
	OK(cuEventRecord(before, NULL));
	OK(cuStreamWaitEvent(NULL, other, 0));
	spin(function, NULL, 20 * MS);
	OK(cuEventRecord(after, NULL));
	NOT_YET(cuEventQuery(other));
	NOT_YET(cuEventQuery(after));
	OK(cuEventSynchronize(after));
	OK(cuEventQuery(other));
	OK(cuEventElapsedTime(&ms, before, after));
	/* Some of it was over when the wait was given; none of both was beside each other. */
	IN_TIME(ms > 100 && ms < 421);
	tell(&notes->stop);
	child_wait(pid, 0);
	OK(cuEventDestroy_v2(other));
	EQUAL(cuIpcOpenEventHandle(&other, notes->event), CUDA_ERROR_INVALID_HANDLE);
}

TEST(nobody_waits_for_an_event_of_a_process_that_was_killed)
{
	CUevent other;
	int pid;

	share_notes();
	pid = child_start(share_event);
	begin();
	await(&notes->ready, 1);
	OK(cuIpcOpenEventHandle(&other, notes->event));
	tell(&notes->stop);
	await(&notes->ready, 2);
	OK(cuStreamWaitEvent(NULL, other, 0));
	NOT_YET(cuStreamQuery(NULL));
	kill(pid, SIGKILL);
	child_wait(pid, SIGKILL);
	OK(cuCtxSynchronize());
	OK(cuEventSynchronize(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_of_a_process_that_was_killed_holds_nobody_up),
		cmocka_unit_test(work_of_a_process_that_is_checkpointed_waits_and_holds_nobody_up),
		cmocka_unit_test(a_context_that_ends_takes_its_work_along),
		cmocka_unit_test(a_launch_whose_context_ends_meanwhile_is_refused),
		cmocka_unit_test(who_dies_between_two_steps_holds_nobody_up),
		cmocka_unit_test(who_is_stopped_between_two_steps_holds_nobody_up_for_long),
		cmocka_unit_test(work_waits_for_an_event_of_another_process),
		cmocka_unit_test(nobody_waits_for_an_event_of_a_process_that_was_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
