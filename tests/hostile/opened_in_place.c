/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread opens memory of another process. Before the library has entered that, another thread closes it, and opens other
 * memory, which comes to lie there.
 *
 * That was taken for one more opening of the first, and nobody was charged for it when its maker had ended.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define MAKERS 7 /* the first one's memory is opened first each time */
#define BYTES  (1024 * MIB)

enum step { MADE = 1, REFUSED, OPENED };

static struct made {
	CUipcMemHandle handle;
	_Atomic int turn, step;
} * made;
static CUcontext context;
static _Atomic bool is_to_open;

static void make(struct made *mine)
{
	CUdeviceptr block;

	while (!mine->turn)
		usleep(1000);
	if (!hostile_try_begin() || cuMemAlloc_v2(&block, BYTES) != CUDA_SUCCESS) {
		mine->step = REFUSED;
		_exit(0);
	}
	MUST(cuIpcGetMemHandle(&mine->handle, block));
	mine->step = MADE;
	while (mine->step == MADE)
		usleep(1000);
	_exit(0);
}

static CUdeviceptr open_made(const struct made *of)
{
	CUdeviceptr block = 0;

	cuIpcOpenMemHandle_v2(&block, of->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	return block;
}

static void *open_first(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		while (!is_to_open)
			usleep(100);
		open_made(&made[0]);
		is_to_open = false;
	}
	return unused;
}

static void open_in_its_place(const struct made *other)
{
	CUdeviceptr known = open_made(&made[0]);

	MUST(cuIpcCloseMemHandle(known));
	is_to_open = true;
	usleep(20000);
	cuIpcCloseMemHandle(known);
	open_made(other);
	while (is_to_open)
		usleep(100);
}

static void attack(void)
{
	pid_t makers[MAKERS];
	pthread_t thread;

	made = mmap(NULL, MAKERS * sizeof(*made), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(made == MAP_FAILED);
	for (int i = 0; i < MAKERS; i++) {
		makers[i] = fork();
		if (makers[i] == 0)
			make(&made[i]);
	}
	context = hostile_begin();
	MUST(pthread_create(&thread, NULL, open_first, NULL));
	for (int i = 0; i < MAKERS; i++) {
		made[i].turn = 1;
		while (made[i].step == 0)
			usleep(1000);
		if (i == 0)
			continue;
		if (made[i].step == MADE)
			open_in_its_place(&made[i]);
		made[i].step = OPENED;
		MUST(waitpid(makers[i], NULL, 0) != makers[i]);
	}
	hostile_look();
	made[0].step = OPENED;
	MUST(waitpid(makers[0], NULL, 0) != makers[0]);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .slow_calls = {"cuCtxGetCurrent"},
					  .is_slow_only = true,
					  .attack = attack});
}
