/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linked CUDA program beside another preloaded library (outer.c). It takes blocks of 64 MiB until
 * it is refused and prints how many it got, through puts.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "gpu/abi/cuda.h"

typedef unsigned report_fn(unsigned *ret_allocs);

extern cuInit_fn cuInit;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;

int main(void)
{
	report_fn *report = (report_fn *)dlsym(RTLD_DEFAULT, "outer_report");
	unsigned blocks = 0, allocs = 0, prints;
	CUcontext context;
	CUdeviceptr block;
	char line[128];
	CUresult r;

	if (!report || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context))
		return 1;
	while ((r = cuMemAlloc_v2(&block, 64u << 20)) == CUDA_SUCCESS)
		blocks++;
	if (puts("first") < 0)
		return 2;
	prints = report(&allocs);
	snprintf(line, sizeof(line), "blocks=%u result=%d outer-allocs=%u outer-prints=%u", blocks,
		(int)r, allocs, prints);
	return puts(line) < 0 ? 3 : 0;
}
