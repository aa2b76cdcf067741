/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes give out the handle of their memory and end, one after the other; who opens it writes a small size in the place of the
 * memory's, wherever the handle has that.
 *
 * The slice does not know such a handle, and takes it for another slice's, which is charged in the size that the driver tells.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define MAKERS 8
#define BYTES  (1024 * MIB)

enum step { MADE = 1, REFUSED, OPENED };

static struct {
	CUipcMemHandle handle;
	_Atomic int turn, step;
} * shared;

static void make(int number)
{
	CUdeviceptr block;

	while (shared->turn != number)
		usleep(1000);
	if (!hostile_try_begin() || cuMemAlloc_v2(&block, BYTES) != CUDA_SUCCESS) {
		shared->step = REFUSED;
		_exit(0);
	}
	MUST(cuIpcGetMemHandle(&shared->handle, block));
	shared->step = MADE;
	while (shared->step == MADE)
		usleep(1000);
	_exit(0);
}

static CUipcMemHandle forge(CUipcMemHandle handle)
{
	const uint64_t less = 4096;
	uint64_t word;

	for (size_t i = 0; i + sizeof(word) <= sizeof(handle); i += 4) {
		memcpy(&word, (char *)&handle + i, sizeof(word));
		if (word == BYTES)
			memcpy((char *)&handle + i, &less, sizeof(less));
	}
	return handle;
}

static void attack(void)
{
	pid_t makers[MAKERS];
	CUdeviceptr block;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared == MAP_FAILED);
	for (int i = 0; i < MAKERS; i++) {
		makers[i] = fork();
		if (makers[i] == 0)
			make(i + 1);
	}
	hostile_begin();
	for (int i = 0; i < MAKERS; i++) {
		shared->step = 0;
		shared->turn = i + 1;
		while (shared->step == 0)
			usleep(1000);
		/* Where the driver takes no such handle, the true one. */
		if (shared->step == MADE &&
			cuIpcOpenMemHandle_v2(&block, forge(shared->handle),
				CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS)
			cuIpcOpenMemHandle_v2(
				&block, shared->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
		shared->step = OPENED;
		MUST(waitpid(makers[i], NULL, 0) != makers[i]);
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB, .attack = attack});
}
