/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exception of C++ is thrown by a handler of a signal while the driver allocates, and caught by the program: the call
 * never returns. What it had charged stays charged, the process goes on, and there is no more memory than before.
 */
#include "tests/hostile/hostile.h"

#include <signal.h>
#include <stdlib.h>

#define LEAVE_US 20000
#define TIMES	 2

/* exception.cc */
void exception_throw(int signal);
bool exception_is_caught(void (*work)(void));

static void allocate(void)
{
	CUdeviceptr block;

	ualarm(LEAVE_US, 0);
	cuMemAlloc_v2(&block, 512 * MIB);
	ualarm(0, 0);
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = exception_throw, .sa_flags = SA_NODEFER};
	CUdeviceptr block;

	hostile_begin();
	MUST(cuMemAlloc_v2(&block, 2 * MIB));
	MUST(sigaction(SIGALRM, &action, NULL));
	for (int i = 0; i < TIMES; i++)
		MUST(!exception_is_caught(allocate));
	/* The driver never came to it, and it is charged. */
	if (getenv("VGPU_SHARE"))
		MUST(cuMemAlloc_v2(&block, 512 * MIB) != CUDA_ERROR_OUT_OF_MEMORY);
	MUST(cuMemAlloc_v2(&block, 2 * MIB));
	cuMemAlloc_v2(&block, 4 * GIB);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .board = "", /* where a call can be made slow */
					  .slow_calls = {"cuMemAlloc_v2"},
					  .attack = attack});
}
