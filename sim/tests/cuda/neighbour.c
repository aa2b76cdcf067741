/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a test that use a device beside each other. */
#include "sim/tests/cuda/neighbour.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* No test waits longer for another process. */
#define WAIT_NS (20000 * MS)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 duration_ns)\n{ ret; }\n";

struct notes *notes;

void share_notes(void)
{
	notes = mmap(
		NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(notes != MAP_FAILED);
}

void nap(void)
{
	static const struct timespec time = {.tv_nsec = 500000};

	nanosleep(&time, NULL);
}

/* Pairs with each other. */
void tell(int *what)
{
	__atomic_fetch_add(what, 1, __ATOMIC_RELEASE);
}

void await(const int *what, int value)
{
	uint64_t end = machine_now_ns() + WAIT_NS;

	while (__atomic_load_n(what, __ATOMIC_ACQUIRE) < value) {
		CHECK(machine_now_ns() < end);
		nap();
	}
}

CUfunction load_spin(void)
{
	CUfunction function;
	CUmodule module;

	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&function, module, "spin"));
	return function;
}

CUfunction begin(void)
{
	child_context();
	return load_spin();
}

void spin(CUfunction function, CUstream stream, uint64_t duration_ns)
{
	void *params[] = {&duration_ns};

	OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

float time_work(CUfunction function, int pieces, uint64_t piece_ns)
{
	CUevent start, end;
	float ms;

	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	/* Work before it, so that the host's time does not come between. */
	spin(function, NULL, 20 * MS);
	OK(cuEventRecord(start, NULL));
	for (int i = 0; i < pieces; i++)
		spin(function, NULL, piece_ns);
	OK(cuEventRecord(end, NULL));
	OK(cuEventSynchronize(end));
	OK(cuEventQuery(end));
	OK(cuStreamQuery(NULL));
	OK(cuEventElapsedTime(&ms, start, end));
	return ms;
}

static void be_busy(void)
{
	CUfunction function = begin();

	for (int i = 0; i < 1000; i++)
		spin(function, NULL, 100 * MS);
	tell(&notes->ready);
	await(&notes->stop, 1);
	_exit(0);
}

int start_neighbour(void)
{
	int pid;

	share_notes();
	pid = child_start(be_busy);
	await(&notes->ready, 1);
	return pid;
}

void end_neighbour(int pid)
{
	tell(&notes->stop);
	child_wait(pid, 0);
}

const struct machine_snapshot *look(uint64_t window_ns)
{
	static struct machine_snapshot snap;

	EQUAL(machine_read_snapshot(child_machine(), window_ns, &snap), 0);
	return &snap;
}
