/* SPDX-License-Identifier: Apache-2.0 */
/* A handle for other processes into which another size is written. */
#include "tests/hostile/forged.h"

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
	if (!hostile_try_begin() || cuMemAlloc_v2(&block, BYTES) != CUDA_SUCCESS ||
		cuIpcGetMemHandle(&shared->handle, block) != CUDA_SUCCESS) {
		shared->step = REFUSED;
		_exit(0);
	}
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

void forged_attack(void (*prepare)(void))
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
	if (prepare)
		prepare();
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
