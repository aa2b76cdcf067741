/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that was launched before is launched while another thread unloads its code, or ends its context, and loads others until one with frames of
 * 60,000 bytes, or in a library with 8 GiB of variables, has its handle.
 *
 * Such a launch went straight to the driver: 15,726 MiB were held in a slice of 2 GiB. Now code is not unloaded while a launch of it is under way.
 */
#include "tests/hostile/exchanged.h"

enum way { FRAMES, LIBRARY, CONTEXT, WAYS };

static enum way way_now;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(exchanged.context));
	hostile_launch(exchanged.function, NULL);
	return unused;
}

static bool end_code(void)
{
	CUcontext again;

	if (way_now != CONTEXT)
		return exchanged_unload() == CUDA_SUCCESS;
	return cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS &&
	       cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS &&
	       cuCtxSetCurrent(again) == CUDA_SUCCESS;
}

static void exchange(void)
{
	const CUfunction before = exchanged.function;

	if (end_code())
		exchanged_load_until(before);
}

static void attack_so(int unused)
{
	exchanged_begin(way_now == LIBRARY);
	MUST(hostile_launch(exchanged.function, NULL));
	MUST(cuStreamSynchronize(NULL));
	exchanged_beside(launch, exchange);
}

/* Each in a process of its own, one after the other: frames stay with the context. */
static void attack(void)
{
	for (way_now = 0; way_now < WAYS; way_now++)
		hostile_processes(1, attack_so);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_slow_only = true,
					  .is_simulated_only = true,
					  .is_brief = true,
					  .slow_calls = {"cuLaunchKernel"},
					  .attack = attack});
}
