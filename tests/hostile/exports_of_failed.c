/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where no descriptors are given out, a process makes memory that can be exported, and has the library fail: a handler of a
 * signal leaves a comparison with NVML's figure in the middle, by siglongjmp(). It exports the memory then, and ends.
 *
 * A library that could not limit any more let exports through, unmarked: 6,912 MiB were held in a slice of 3,072. Now nothing is
 * exported by one that has failed.
 */
#include "tests/hostile/descriptors.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>

#define MAKERS	 2
#define LEAVE_US 20000
#define LOOKS	 80 /* each 0.2 s: a comparison that does not end is given up after ten of them */

static int kept[2]; /* what was sent and not received yet is kept as well */
static sigjmp_buf away;
static volatile sig_atomic_t is_inside;

static void leave(int signal)
{
	if (is_inside)
		siglongjmp(away, 1);
}

static void let_fail(void)
{
	CUdeviceptr block;

	signal(SIGALRM, leave);
	if (sigsetjmp(away, 1) == 0) {
		is_inside = 1;
		ualarm(LEAVE_US, 0);
		if (cuMemAlloc_v2(&block, 8 * GIB) == CUDA_SUCCESS) {
			is_inside = 0; /* no library: nothing is compared */
			MUST(cuMemFree_v2(block));
			return;
		}
	}
	is_inside = 0;
	for (int i = 0; i < LOOKS && cuMemAlloc_v2(&block, MIB) == CUDA_SUCCESS; i++) {
		MUST(cuMemFree_v2(block));
		usleep(200000);
	}
}

static void make(int index)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr block, range = 0;
	int memory_fd = -1, range_fd = -1;

	if (!hostile_try_begin() || cuMemAlloc_v2(&block, 2 * MIB) != CUDA_SUCCESS)
		return;
	usleep(1500000);
	if (cuMemCreate(&handle, 2 * GIB, &properties, 0) != CUDA_SUCCESS)
		return;
	cuMemAlloc_v2(&range, 256 * MIB);
	let_fail();
	if (cuMemExportToShareableHandle(&memory_fd, handle,
		    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS)
		descriptors_send(kept[0], memory_fd);
	if (cuMemGetHandleForAddressRange(&range_fd, range, 256 * MIB,
		    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) == CUDA_SUCCESS)
		descriptors_send(kept[0], range_fd);
}

static void attack(void)
{
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, kept));
	for (int i = 0; i < MAKERS; i++)
		hostile_processes(1, make);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .terms = "exports none",
					  .is_brief = true,
					  .slow_calls = {"nvmlDeviceGetComputeRunningProcesses_v3"},
					  .is_slow_only = true,
					  .attack = attack});
}
