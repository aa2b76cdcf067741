/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a descriptor keeps is freed while another process of the slice is checkpointed: as much becomes free as if the descriptor
 * kept none. That process is back before NVML is asked for it again.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define BLOCKS 6

static struct shared {
	_Atomic bool is_freeing, is_over;
	_Atomic int ready;
} * all;

/* Holds as much, and waits. */
static void hold(void)
{
	CUdeviceptr block;

	hostile_begin();
	MUST(cuMemAlloc_v2(&block, GIB));
	atomic_fetch_add(&all->ready, 1);
	while (!atomic_load(&all->is_over))
		usleep(1000);
	_exit(0);
}

/* Each slow call takes 50 ms: NVML, what is free, the free, what is free, NVML. */
static void move(int pid)
{
	MUST(cuInit(0));
	atomic_fetch_add(&all->ready, 1);
	while (!atomic_load(&all->is_over)) {
		if (!atomic_load(&all->is_freeing)) {
			usleep(100);
			continue;
		}
		usleep(125000);
		MUST(cuCheckpointProcessLock(pid, NULL));
		MUST(cuCheckpointProcessCheckpoint(pid, NULL));
		usleep(50000);
		MUST(cuCheckpointProcessRestore(pid, NULL));
		MUST(cuCheckpointProcessUnlock(pid, NULL));
		while (atomic_load(&all->is_freeing))
			usleep(100);
	}
	_exit(0);
}

static void free_kept(void)
{
	CUdeviceptr block;
	int fd;

	if (cuMemAlloc_v2(&block, GIB) != CUDA_SUCCESS)
		return;
	MUST(cuMemGetHandleForAddressRange(
		&fd, block, GIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	atomic_store(&all->is_freeing, true);
	MUST(cuMemFree_v2(block));
	usleep(200000);
	atomic_store(&all->is_freeing, false);
	usleep(1000);
}

static void attack(void)
{
	pid_t holder, mover;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(all == MAP_FAILED);
	holder = fork();
	if (holder == 0)
		hold();
	mover = fork();
	if (mover == 0)
		move(holder);
	while (atomic_load(&all->ready) < 2)
		usleep(1000);
	hostile_begin();
	for (int i = 0; i < BLOCKS; i++)
		free_kept();
	hostile_look();
	atomic_store(&all->is_over, true);
	MUST(waitpid(holder, NULL, 0) != holder);
	MUST(waitpid(mover, NULL, 0) != mover);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .slow_calls = {"cuMemGetInfo_v2",
						  "nvmlDeviceGetComputeRunningProcesses_v3"},
					  .attack = attack});
}
