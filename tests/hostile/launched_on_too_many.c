/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuLaunchCooperativeKernelMultiDevice() with 65 launches, of kernels with deep frames: more devices than there are. The library called the driver
 * as it was, and 15,724 MiB were held in a slice of 2 GiB, which the simulated driver gives for as many launches on one device. Now it is refused.
 */
#include "tests/hostile/hostile.h"

#define LAUNCHES 65

static void attack(void)
{
	static CUDA_LAUNCH_PARAMS launches[LAUNCHES];
	char text[HOSTILE_CODE_BYTES];
	uint64_t out = 0, count = 0;
	void *arguments[] = {&out, &count};
	CUfunction function;
	CUstream stream;
	CUmodule module;

	hostile_begin();
	MUST(cuModuleLoadData(
		&module, hostile_ptx(&(struct hostile_code){.frame_bytes = 60000}, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < LAUNCHES; i++)
		launches[i] = (CUDA_LAUNCH_PARAMS){.function = function,
			.gridDimX = 1,
			.gridDimY = 1,
			.gridDimZ = 1,
			.blockDimX = 1,
			.blockDimY = 1,
			.blockDimZ = 1,
			.hStream = stream,
			.kernelParams = arguments};
	cuLaunchCooperativeKernelMultiDevice(launches, LAUNCHES, 0);
	hostile_look();
	cuCtxSynchronize();
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){
			      .quota_bytes = 2 * GIB, .is_simulated_only = true, .attack = attack});
}
