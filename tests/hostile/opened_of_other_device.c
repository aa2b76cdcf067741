/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of device 1 is opened in a context of device 0, by a handle that the region has no place for, and its maker ends. Then the
 * rest of device 1 is taken.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define PLACES 1100
#define ROUNDS 2

static struct shared {
	CUipcMemHandle handle;
	_Atomic int made, opened;
} * shared;

static void begin(int ordinal)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, ordinal));
	MUST(cuCtxSetCurrent(context));
}

static void make(int round)
{
	CUdeviceptr at;

	begin(1);
	if (cuMemAlloc_v2(&at, GIB) == CUDA_SUCCESS) {
		MUST(cuIpcGetMemHandle(&shared->handle, at));
		atomic_store(&shared->made, round + 1);
		while (atomic_load(&shared->opened) <= round)
			usleep(1000);
	}
	_exit(0);
}

/* A card without a fabric may make none. */
static void fill_places(void)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemFabricHandle fabric;
	CUmemoryPool pool;

	for (int i = 0; i < PLACES && cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS; i++)
		cuMemPoolExportToShareableHandle(&fabric, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0);
}

static void keep(void)
{
	CUdeviceptr at;

	begin(0);
	fill_places();
	atomic_store(&shared->opened, 0);
	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load(&shared->made) <= i)
			usleep(1000);
		cuIpcOpenMemHandle_v2(&at, shared->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
		atomic_store(&shared->opened, i + 1);
	}
	for (;;)
		pause();
}

static void attack(void)
{
	pid_t keeper, maker;
	CUdeviceptr at;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared == MAP_FAILED);
	atomic_store(&shared->opened, -1);
	keeper = fork();
	if (keeper == 0)
		keep();
	while (atomic_load(&shared->opened) < 0)
		usleep(1000);
	for (int i = 0; i < ROUNDS; i++) {
		maker = fork();
		if (maker == 0)
			make(i);
		MUST(waitpid(maker, NULL, 0) != maker);
	}
	begin(1);
	for (int i = 0; i < 60 && cuMemAlloc_v2(&at, 64 * MIB) == CUDA_SUCCESS; i++)
		;
	hostile_look();
	kill(keeper, SIGKILL);
	MUST(waitpid(keeper, NULL, 0) != keeper);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 3 * GIB, .device_count = 2, .attack = attack});
}
