/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four processes work one after the other, each waiting for an event of the one before, which lies in that process. None
 * waits for its own event before it gives the next piece, so each one's work waits on the device.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/hostile/served.h"

#define PROCESSES 4
#define KERNEL_NS (10 * MS)

static struct {
	CUipcEventHandle handle[PROCESSES];
	_Atomic unsigned made, turn;
} * shared;

static void await(_Atomic unsigned *word, unsigned value)
{
	while (*word < value)
		served_sleep(MS / 2);
}

static void work(int index)
{
	unsigned before = (unsigned)(index + PROCESSES - 1) % PROCESSES;
	CUevent own, other;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	MUST(cuEventCreate(&own, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	MUST(cuIpcGetEventHandle(&shared->handle[index], own));
	shared->made++;
	await(&shared->made, PROCESSES);
	MUST(cuIpcOpenEventHandle(&other, shared->handle[before]));
	for (unsigned turn = (unsigned)index;; turn += PROCESSES) {
		await(&shared->turn, turn);
		/* So much is given ahead, and no more: what was recorded here in the last round is done. */
		if (turn >= PROCESSES)
			MUST(cuEventSynchronize(own));
		if (turn)
			MUST(cuStreamWaitEvent(NULL, other, 0));
		served_launch(kernel, NULL, KERNEL_NS);
		MUST(cuEventRecord(own, NULL));
		shared->turn = turn + 1;
	}
}

static void attack(void)
{
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared == MAP_FAILED);
	hostile_processes(PROCESSES, work);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 290, .attack = attack});
}
