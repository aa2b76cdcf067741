/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool is exported while it is empty, and another process of the slice imports it. Its maker allocates from it, and is killed when
 * the driver has the memory and the library has not read yet what the pool holds. In every other round the allocation is under way
 * when the pool is exported.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/hostile/descriptors.h"

#define ROUNDS	   12
#define DELAY_US   40000
#define LONGER_US  25000 /* in each round */
#define SETTLES_US 1500000
#define BEFORE_US  10000 /* less than what the driver's call takes */

static int pair[2];

static void *end_soon(void *round)
{
	usleep(DELAY_US + (unsigned)(uintptr_t)round * LONGER_US);
	kill(getpid(), SIGKILL);
	return NULL;
}

static CUmemoryPool pool;

static void *grow(void *context)
{
	CUdeviceptr at;

	if (context)
		MUST(cuCtxSetCurrent(context));
	cuMemAllocFromPoolAsync(&at, 512 * MIB, pool, NULL);
	for (;;)
		pause();
	return NULL;
}

static void make(int round)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	bool is_grown_before = round % 2;
	CUcontext context;
	pthread_t thread;
	char byte;
	int fd;

	if (!hostile_try_begin())
		_exit(0);
	MUST(cuCtxGetCurrent(&context));
	MUST(cuMemPoolCreate(&pool, &properties));
	if (is_grown_before) {
		MUST(pthread_create(&thread, NULL, grow, context));
		usleep(BEFORE_US);
	}
	MUST(cuMemPoolExportToShareableHandle(
		&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	descriptors_send(pair[0], fd);
	MUST(read(pair[0], &byte, 1) != 1);
	if (is_grown_before)
		kill(getpid(), SIGKILL);
	MUST(pthread_create(&thread, NULL, end_soon, (void *)(uintptr_t)round));
	grow(NULL);
}

static void keep(void)
{
	CUmemoryPool imported;
	CUdeviceptr at;
	int fd;

	hostile_begin();
	while ((fd = descriptors_receive(pair[1])) >= 0) {
		cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		close(fd);
		MUST(write(pair[1], "x", 1) != 1);
	}
	usleep(SETTLES_US);
	for (int i = 0; i < 100 && cuMemAlloc_v2(&at, 32 * MIB) == CUDA_SUCCESS; i++)
		;
	hostile_look();
	_exit(0);
}

static void attack(void)
{
	pid_t keeper, maker;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	keeper = fork();
	if (keeper == 0)
		keep();
	for (int i = 0; i < ROUNDS; i++) {
		maker = fork();
		if (maker == 0)
			make(i);
		MUST(waitpid(maker, NULL, 0) != maker);
	}
	MUST(write(pair[0], "x", 1) != 1);
	MUST(waitpid(keeper, NULL, 0) != keeper);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .slow_calls = {"cuMemPoolGetAttribute"},
					  .is_slow_only = true,
					  .attack = attack});
}
