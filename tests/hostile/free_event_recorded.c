/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is freed in the order of a stream that is busy. The event by which the library knows that the stream has got there is
 * recorded anew by the program, in a stream that is idle: its handle is that of an event that was destroyed just before.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    12
#define BLOCK_BYTES (1024 * MIB)
#define GUESSES	    16

static void attack(void)
{
	CUdeviceptr block;
	CUstream busy, idle;
	CUevent guess[GUESSES];

	hostile_begin();
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	hostile_keep_busy(busy);
	for (int i = 0; i < BLOCKS; i++) {
		if (cuMemAlloc_v2(&block, BLOCK_BYTES) != CUDA_SUCCESS)
			break;
		for (int k = 0; k < GUESSES; k++)
			MUST(cuEventCreate(&guess[k], CU_EVENT_DISABLE_TIMING));
		for (int k = 0; k < GUESSES; k++)
			MUST(cuEventDestroy_v2(guess[k]));
		MUST(cuMemFreeAsync(block, busy));
		for (int k = 0; k < GUESSES; k++) {
			if (i % 2)
				cuEventRecordWithFlags(guess[k], idle, CU_EVENT_RECORD_DEFAULT);
			else
				cuEventRecord(guess[k], idle);
		}
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){
			      .quota_bytes = 2 * GIB, .is_simulated_only = true, .attack = attack});
}
