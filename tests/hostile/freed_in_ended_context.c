/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is freed in the order of a busy stream of another context, which is destroyed then: the library's event ends with that
 * context, and the driver frees the memory when the stream's work would have ended.
 *
 * The end of the event passed for its time: 7,686 MiB were held in a slice of 4,096. Now the memory stays charged until the driver's
 * figure for the process has fallen by it. Threads that are in and out of calls keep comparisons from being exact.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	4
#define CALLERS 4
#define BUSY_NS UINT64_C(2000000000)

static const char busy_code[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry busy(.param .u64 duration_ns)\n{\n"
	"\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n"
	"\tld.param.u64 %rd1, [duration_ns];\n\tmov.u64 %rd2, %globaltimer;\n"
	"again:\n\tmov.u64 %rd3, %globaltimer;\n\tsub.u64 %rd3, %rd3, %rd2;\n"
	"\tsetp.lt.u64 %p1, %rd3, %rd1;\n\t@%p1 bra again;\n\tret;\n}\n";

struct other {
	CUcontext context;
	CUfunction busy;
	CUstream stream;
};

static CUcontext primary;

static void launch(const struct other *other, uint64_t duration_ns)
{
	void *parameters[] = {&duration_ns};

	MUST(cuLaunchKernel(other->busy, 1, 1, 1, 1, 1, 1, 0, other->stream, parameters, NULL));
}

/* A comparison is made for a new context, and for the first launch of a function. */
static void make(struct other *other)
{
	CUmodule module;

	MUST(cuCtxCreate_v2(&other->context, 0, 0));
	MUST(cuStreamCreate(&other->stream, CU_STREAM_NON_BLOCKING));
	MUST(cuModuleLoadData(&module, busy_code));
	MUST(cuModuleGetFunction(&other->busy, module, "busy"));
	launch(other, 1000);
	MUST(cuStreamSynchronize(other->stream));
}

static void *call_often(void *unused)
{
	MUST(cuCtxSetCurrent(primary));
	for (;;)
		cuMemUnmap(0, 2 * MIB);
	return unused;
}

static bool free_in(const struct other *other)
{
	CUdeviceptr block;

	MUST(cuCtxSetCurrent(primary));
	if (cuMemAlloc_v2(&block, GIB) != CUDA_SUCCESS)
		return false;
	MUST(cuCtxSetCurrent(other->context));
	launch(other, BUSY_NS);
	MUST(cuMemFreeAsync(block, other->stream));
	MUST(cuCtxDestroy_v2(other->context));
	return true;
}

static void attack(void)
{
	struct other others[ROUNDS];
	CUdeviceptr block;
	pthread_t thread;

	primary = hostile_begin();
	for (int i = 0; i < ROUNDS; i++)
		make(&others[i]);
	for (int i = 0; i < CALLERS; i++)
		MUST(pthread_create(&thread, NULL, call_often, NULL));
	for (int i = 0; i < ROUNDS && free_in(&others[i]); i++)
		;
	MUST(cuCtxSetCurrent(primary));
	cuMemAlloc_v2(&block, 3 * GIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB, .attack = attack});
}
