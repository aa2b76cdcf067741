/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at the places of base/fault.h, in a tenant library built for tests, by environment:
 *
 *	VGPU_FAULT="ACTION N PLACE"   kill, stop or fork when PLACE is passed for the N-th time
 *	VGPU_FAULT="borrow N PLACE"   memory comes there, as by another thread: a block through our hook,
 *				      which goes at the next place, and one that nobody names, which stays;
 *				      in a context of its own where there is none yet
 *	VGPU_FAULT="endpool N PLACE"  the device's current pool is destroyed there, as by another thread
 *	VGPU_FAULT="setpool N PLACE"  its default pool becomes current there, likewise
 *	VGPU_FAULT="usepool N PLACE"  8 GiB come there from the pool that the driver made last, likewise
 *	VGPU_FAULT="look N PLACE"     how much is free is asked there, for which the books are put right, likewise
 *	VGPU_FAULT="endctx N PLACE"   the current context is destroyed there by another thread
 *	VGPU_FAULT="fail N PLACE"     our own machinery fails there, as where a graph finds no memory for its books
 *	VGPU_FAULT="memory N"	      our own memory runs out at the N-th request
 *	VGPU_FAULT="memory-from N"    and at all after it
 *	VGPU_FAULT_LOG=FILE	      each place that is passed is a line there
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/fault.h"
#include "gpu/abi/cuda.h"
#include "gpu/abi/nvml.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/state.h"

#define CONTEXT_WAIT_MS	  200
#define CHILD_SECONDS	  60 /* until a child that hangs is ended */
#define BORROWED_BYTES	  (UINT64_C(64) << 20)
#define UNANNOUNCED_BYTES (UINT64_C(16) << 20)
#define POOL_BLOCK_BYTES  (UINT64_C(8) << 30)

cuInit_fn cuInit;
cuDeviceTotalMem_v2_fn cuDeviceTotalMem_v2;
cuCtxCreate_v2_fn cuCtxCreate_v2;
cuCtxDestroy_v2_fn cuCtxDestroy_v2;
cuMemGetInfo_v2_fn cuMemGetInfo_v2;
cuMemAlloc_v2_fn cuMemAlloc_v2;
cuMemFree_v2_fn cuMemFree_v2;
cuMemAllocAsync_fn cuMemAllocAsync;
cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
cuLaunchKernel_fn cuLaunchKernel;
cuStreamSynchronize_fn cuStreamSynchronize;
cuDeviceSetMemPool_fn cuDeviceSetMemPool;
cuMemPoolDestroy_fn cuMemPoolDestroy;
cuMemAllocFromPoolAsync_fn cuMemAllocFromPoolAsync;
nvmlDeviceGetMemoryInfo_fn nvmlDeviceGetMemoryInfo;

static bool is_child, is_inside;
static CUdeviceptr borrowed;
static _Atomic unsigned hits, requests;

static void log_place(const char *place)
{
	const char *path = getenv("VGPU_FAULT_LOG");
	char line[96];
	int fd, length;

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	length = snprintf(line, sizeof(line), "%s\n", place);
	if (fd < 0 || write(fd, line, (size_t)length) != length)
		abort();
	close(fd);
}

/*
 * As a child does that another thread forked at this instant: the memory is as the place left it, locks
 * included. Whatever the calls answer, they must answer.
 */
static void live_as_child(void)
{
	size_t free_bytes, total_bytes;
	nvmlMemory_t memory;
	CUcontext context;
	CUdeviceptr p;

	is_child = true;
	signal(SIGALRM, SIG_DFL);
	alarm(CHILD_SECONDS);
	cuStreamSynchronize(NULL);
	cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	nvmlDeviceGetMemoryInfo(NULL, &memory);
	cuInit(0);
	cuMemGetInfo_v2(&free_bytes, &total_bytes);
	cuDeviceTotalMem_v2(&total_bytes, 0);
	cuDevicePrimaryCtxRetain(&context, 0);
	cuMemAlloc_v2(&p, 1000);
	cuMemAllocAsync(&p, 1000, NULL);
	_exit(0);
}

static void fork_here(const char *place)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		live_as_child();
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fprintf(stderr, "a child forked at '%s' ended with %d\n", place, status);
}

/* Places on the way of these calls are none of the order's. */
static void borrow(void)
{
	CUdeviceptr unannounced;
	CUcontext context;

	is_inside = true;
	if (cuda.cuCtxGetCurrent(&context) == CUDA_SUCCESS && !context &&
		cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS)
		fprintf(stderr, "no context to borrow in\n");
	if (cuMemAlloc_v2(&borrowed, BORROWED_BYTES) != CUDA_SUCCESS ||
		cuda.cuMemAlloc_v2(&unannounced, UNANNOUNCED_BYTES) != CUDA_SUCCESS)
		fprintf(stderr, "no memory to be borrowed\n");
	is_inside = false;
}

static void bring_back(void)
{
	is_inside = true;
	if (cuMemFree_v2(borrowed) != CUDA_SUCCESS)
		fprintf(stderr, "what was borrowed stays\n");
	borrowed = 0;
	is_inside = false;
}

/* Destroys the current pool, or makes the default one current; nothing where the default one is. */
static void change_pool(bool is_end)
{
	CUmemoryPool own, pool;

	is_inside = true;
	if (cuda.cuDeviceGetDefaultMemPool(&own, 0) == CUDA_SUCCESS &&
		cuda.cuDeviceGetMemPool(&pool, 0) == CUDA_SUCCESS && pool != own &&
		(is_end ? cuMemPoolDestroy(pool) : cuDeviceSetMemPool(0, own)) != CUDA_SUCCESS)
		fprintf(stderr, "the current pool stays\n");
	is_inside = false;
}

static void *destroy_context(void *context)
{
	static _Atomic bool is_done;

	if (!context)
		return (void *)(uintptr_t)atomic_load(&is_done);
	if (cuCtxDestroy_v2(context) != CUDA_SUCCESS)
		fprintf(stderr, "the context stays\n");
	atomic_store(&is_done, true);
	return NULL;
}

/* Destroys the current context in a thread of its own, which is waited for as long as nothing of ours keeps it. */
static void end_context(void)
{
	CUcontext context = NULL;
	pthread_t thread;

	is_inside = true;
	if (cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context ||
		pthread_create(&thread, NULL, destroy_context, context) != 0)
		fprintf(stderr, "no context is ended\n");
	else
		pthread_detach(thread);
	for (int i = 0; i < CONTEXT_WAIT_MS && !destroy_context(NULL); i++)
		usleep(1000);
}

static cuMemPoolCreate_fn *create_pool;
static CUmemoryPool last_pool;

static CUresult create_and_remember(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	CUresult r = create_pool(pool, properties);

	if (r == CUDA_SUCCESS)
		last_pool = *pool;
	return r;
}

/* Whatever is answered: the books tell whether it was charged. */
static void use_pool(void)
{
	CUdeviceptr p;

	is_inside = true;
	cuMemAllocFromPoolAsync(&p, POOL_BLOCK_BYTES, last_pool, NULL);
	is_inside = false;
}

static void look(void)
{
	size_t free_bytes, total_bytes;

	is_inside = true;
	if (cuMemGetInfo_v2(&free_bytes, &total_bytes) != CUDA_SUCCESS)
		fprintf(stderr, "nothing is known to be free\n");
	is_inside = false;
}

/* Before the program makes a pool. */
static void remember_pools(void)
{
	if (create_pool || !cuda.cuMemPoolCreate)
		return;
	create_pool = cuda.cuMemPoolCreate;
	cuda.cuMemPoolCreate = create_and_remember;
}

/* A program of tests may have these (tests/hunt); then it decides what happens. */
extern void hunt_at_place(const char *place) __attribute__((weak, visibility("default")));
extern bool hunt_is_out_of_memory(void) __attribute__((weak, visibility("default")));

/* A thread that is cancelled at a place leaves all as it is there: no thread that can be comes to one. */
static void check_cancellation(const char *place)
{
	int before = cancel_put_off();

	if (before == PTHREAD_CANCEL_ENABLE)
		fprintf(stderr, "a thread could be cancelled at '%s'\n", place);
	cancel_as_before(&before);
}

void fault_hit(const char *place)
{
	const char *order = getenv("VGPU_FAULT");
	char action[16];
	unsigned n;
	int at = 0;

	check_cancellation(place);

	if (is_child || is_inside)
		return;
	if (hunt_at_place) {
		hunt_at_place(place);
		return;
	}
	log_place(place);
	if (borrowed)
		bring_back();
	if (!order || sscanf(order, "%15s %u %n", action, &n, &at) != 2 ||
		(strcmp(action, "usepool") == 0 && (remember_pools(), false)) ||
		strcmp(order + at, place) != 0 || atomic_fetch_add(&hits, 1) + 1 != n)
		return;
	if (strcmp(action, "kill") == 0)
		kill(getpid(), SIGKILL);
	else if (strcmp(action, "stop") == 0)
		kill(getpid(), SIGSTOP);
	else if (strcmp(action, "borrow") == 0)
		borrow();
	else if (strcmp(action, "endpool") == 0 || strcmp(action, "setpool") == 0)
		change_pool(action[0] == 'e');
	else if (strcmp(action, "look") == 0)
		look();
	else if (strcmp(action, "endctx") == 0)
		end_context();
	else if (strcmp(action, "usepool") == 0)
		use_pool();
	else if (strcmp(action, "fail") == 0)
		state_on_failure("test", "it was told so");
	else
		fork_here(place);
}

bool fault_is_out_of_memory(void)
{
	const char *order = getenv("VGPU_FAULT");
	unsigned n, request;
	char action[16];

	if (hunt_is_out_of_memory)
		return hunt_is_out_of_memory();
	log_place("memory");
	if (!order || sscanf(order, "%15s %u", action, &n) != 2)
		return false;
	request = atomic_fetch_add(&requests, 1) + 1;
	return (strcmp(action, "memory") == 0 && request == n) ||
	       (strcmp(action, "memory-from") == 0 && request >= n);
}
