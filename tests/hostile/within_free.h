/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a descriptor keeps is freed, and another thread does something within that: between
 * the driver's two answers for what is free, which rises by something else then. Included once.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	  8
#define STEP_US	  100
#define WITHIN_US 75000 /* half of a slow call after the first question */

static CUcontext context;
static _Atomic bool is_freeing, is_over;

/* Of the program: before the first free; one of them; and of the other thread, within it and afterwards. */
static void prepare(void);
static void free_one(void);
static void act_within(void);
static void act_afterwards(void);

static void *act(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	while (!is_over) {
		usleep(STEP_US);
		if (!is_freeing)
			continue;
		usleep(WITHIN_US);
		act_within();
		while (is_freeing)
			usleep(STEP_US);
		act_afterwards();
	}
	return unused;
}

/* A block, and a descriptor that keeps it. False where the quota is full. */
static bool take_kept(CUdeviceptr *ret_block)
{
	int range;

	if (cuMemAlloc_v2(ret_block, GIB) != CUDA_SUCCESS)
		return false;
	MUST(cuMemGetHandleForAddressRange(
		&range, *ret_block, GIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	return true;
}

static void free_watched(CUdeviceptr block)
{
	is_freeing = true;
	MUST(cuMemFree_v2(block));
	is_freeing = false;
	usleep(1000);
}

static void attack(void)
{
	pthread_t thread;

	context = hostile_begin();
	prepare();
	MUST(pthread_create(&thread, NULL, act, NULL));
	for (unsigned i = 0; i < ROUNDS; i++)
		free_one();
	is_over = true;
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .slow_calls = {"cuMemGetInfo_v2"},
					  .attack = attack});
}
