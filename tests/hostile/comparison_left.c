/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler of a signal leaves a comparison with NVML's figure in the middle, by siglongjmp(), which is never made again
 * then. Fat binaries of 4 GiB follow: nobody can say what they take.
 *
 * They were granted, and 2 MiB charged for each. What cannot be measured is refused now.
 */
#include "tests/hostile/hostile.h"

#include <setjmp.h>
#include <signal.h>

#define LEAVE_US 20000

static sigjmp_buf away;
static volatile sig_atomic_t is_inside;

static void leave(int signal)
{
	if (is_inside)
		siglongjmp(away, 1);
}

static void attack(void)
{
	struct hostile_code code = {
		.variables = ".visible .global .align 4 .b8 data[0x100000000];"};
	CUdeviceptr block;
	CUmodule module;

	hostile_begin();
	usleep(1500000);
	MUST(cuMemAlloc_v2(&block, 2 * MIB));
	signal(SIGALRM, leave);
	if (sigsetjmp(away, 1) == 0) {
		is_inside = 1;
		ualarm(LEAVE_US, 0);
		cuMemAlloc_v2(&block, 8 * GIB);
		is_inside = 0;
	}
	is_inside = 0;
	for (int i = 0; i < 2; i++)
		cuModuleLoadData(&module, hostile_fat_binary(&code));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_brief = true,
					  .slow_calls = {"nvmlDeviceGetComputeRunningProcesses_v3"},
					  .attack = attack});
}
