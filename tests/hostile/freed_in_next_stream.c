/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is freed in the order of a stream that is busy. Before the library's event is recorded there, another thread destroys the
 * stream and makes one of the same handle, which is idle.
 *
 * The memory was given back when the idle stream had passed the event. Now no stream is made from before the free until the event is
 * recorded.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define BLOCKS	     8
#define BLOCK_BYTES  (1024 * MIB)
#define STREAMS_MOST 64
#define BUSY_NS	     UINT64_C(20000000000)
#define FREES_SEEN   8 /* a free looks at so many of those that wait */
#define CALLERS	     3 /* keep off the comparison that is owed */

static const char busy_code[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry busy(.param .u64 duration_ns)\n{\n"
	"\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n"
	"\tld.param.u64 %rd1, [duration_ns];\n\tmov.u64 %rd2, %globaltimer;\n"
	"again:\n\tmov.u64 %rd3, %globaltimer;\n\tsub.u64 %rd3, %rd3, %rd2;\n"
	"\tsetp.lt.u64 %p1, %rd3, %rd1;\n\t@%p1 bra again;\n\tret;\n}\n";

static CUcontext context;
static CUstream stream;
static CUdeviceptr block;

static void *let_go(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	cuMemFreeAsync(block, stream);
	return unused;
}

static void *call_often(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;)
		cuMemUnmap(0, 2 * MIB);
	return unused;
}

static CUevent keep_busy_for_long(CUstream busy)
{
	uint64_t duration_ns = BUSY_NS;
	void *parameters[] = {&duration_ns};
	CUfunction function;
	CUmodule module;
	CUevent event;

	MUST(cuModuleLoadData(&module, busy_code));
	MUST(cuModuleGetFunction(&function, module, "busy"));
	MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, busy, parameters, NULL));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	MUST(cuEventRecord(event, busy));
	return event;
}

static void exchange_while_freed(void)
{
	CUstream next = NULL;
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, let_go, NULL));
	usleep(20000);
	MUST(cuStreamDestroy_v2(stream));
	for (int i = 0; i < STREAMS_MOST && next != stream; i++)
		if (cuStreamCreate(&next, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
			break;
	MUST(pthread_join(thread, NULL));
}

static void attack(void)
{
	pthread_t thread;
	CUstream busy;
	CUevent event;

	context = hostile_begin();
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	event = keep_busy_for_long(busy);
	for (int i = 0; i < FREES_SEEN; i++) {
		MUST(cuMemAlloc_v2(&block, 4096));
		MUST(cuMemFreeAsync(block, busy));
	}
	for (int i = 0; i < CALLERS; i++) {
		MUST(pthread_create(&thread, NULL, call_often, NULL));
		usleep(17000);
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (cuMemAlloc_v2(&block, BLOCK_BYTES) != CUDA_SUCCESS ||
			cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
			break;
		MUST(cuStreamWaitEvent(stream, event, 0));
		exchange_while_freed();
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuEventCreate", "cuMemUnmap"},
					  .is_slow_only = true,
					  .attack = attack});
}
