/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of modules lie in chunks with small blocks. These are freed as the last calls of a process, which then waits: one
 * process after the other.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define COUNT	  500
#define PROCESSES 5

static _Atomic int *done;

static void load(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 8 .b8 data[1048576];\n"};
	static CUdeviceptr small[COUNT];
	char text[HOSTILE_CODE_BYTES];
	CUmodule module;
	int n;

	if (!hostile_try_begin())
		return;
	for (n = 0; n < COUNT && cuMemAlloc_v2(&small[n], 512) == CUDA_SUCCESS; n++)
		cuModuleLoadData(&module, hostile_ptx(&code, text));
	for (int i = 0; i < n; i++)
		MUST(cuMemFree_v2(small[i]));
}

static void run(int index)
{
	load();
	atomic_fetch_add(done, 1);
	while (atomic_load(done) < PROCESSES)
		usleep(10000);
	if (index == 0) {
		hostile_look();
		atomic_fetch_add(done, 1);
	}
	while (atomic_load(done) <= PROCESSES)
		usleep(10000);
}

static void attack(void)
{
	int status;

	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(done == MAP_FAILED);
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() == 0) {
			run(i);
			_exit(0);
		}
		while (atomic_load(done) <= i)
			usleep(10000);
	}
	while (wait(&status) > 0)
		;
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB, .attack = attack});
}
