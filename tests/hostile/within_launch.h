/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch whose parameters lie in a page that nobody may read: the driver's read of them is a signal, and what its handler does, or has another
 * thread do, comes within the launch. Included once.
 */
#pragma once

#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define WITHIN_PAGE_BYTES 4096

static void *within_page;
static sem_t within_asked, within_answered;

static inline void within_begin(void (*handler)(int number))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER};

	within_page = mmap(NULL, WITHIN_PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(within_page == MAP_FAILED);
	MUST(sem_init(&within_asked, 0, 0));
	MUST(sem_init(&within_answered, 0, 0));
	MUST(sigaction(SIGSEGV, &action, NULL));
}

/* Of the handler: another thread does what it does, and then this one goes on. */
static inline void within_ask(void)
{
	MUST(sem_post(&within_asked));
	MUST(sem_wait(&within_answered));
}

/* Of the other thread, before and after. */
static inline void within_await(void)
{
	MUST(sem_wait(&within_asked));
}

static inline void within_answer(void)
{
	MUST(sem_post(&within_answered));
}

/* Of the handler, last: the driver reads on. */
static inline void within_allow(void)
{
	MUST(mprotect(within_page, WITHIN_PAGE_BYTES, PROT_READ | PROT_WRITE));
}

/* A handler: another thread does what it does, and the driver reads on. */
static inline void within_hand_over(int number)
{
	within_ask();
	within_allow();
}

static inline CUresult within_launch(CUfunction kernel, CUstream stream, uint64_t ns)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node = counted_node(kernel, ns);

	memcpy(within_page, node.kernelParams, 2 * sizeof(void *));
	MUST(mprotect(within_page, WITHIN_PAGE_BYTES, PROT_NONE));
	return cuLaunchKernel(
		kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, stream, within_page, NULL);
}
