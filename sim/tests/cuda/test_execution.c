/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, streams and events on virtual time, injected faults, counts. */
#include "sim/tests/cuda/child.h"

#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".global .align 4 .b8 table[1048576];\n"
			  ".visible .entry spin(\n"
			  "\t.param .u32 first,\n"
			  "\t.param .u64 duration_ns\n"
			  ")\n"
			  ".maxntid 1024, 1, 1\n"
			  "{ // a body\n\tret;\n}\n"
			  "// vgpu-sim duration_ns=3000000\n"
			  ".visible .entry noted()\n{ ret; }\n"
			  "/* .entry hidden() */\n"
			  ".visible .entry plain(.param .align 8 .b8 block[24])\n{ { ret; } }\n";

static CUmodule module;

static CUfunction load(const char *name)
{
	CUfunction function;

	if (!module)
		OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUresult spin(CUfunction function, CUstream stream, uint64_t duration_ns)
{
	unsigned int first = 0;
	void *params[] = {&first, &duration_ns};

	return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

TEST(modules_have_the_kernels_and_globals_of_their_text)
{
	CUfunction function;
	CUdeviceptr p;
	CUmodule other;
	size_t offset, size;

	child_context();
	OK(cuFuncGetParamInfo(load("spin"), 1, &offset, &size));
	EQUAL(offset, 8);
	EQUAL(size, 8);
	OK(cuFuncGetParamInfo(load("plain"), 0, &offset, &size));
	EQUAL(size, 24);
	EQUAL(cuModuleGetFunction(&function, module, "hidden"), CUDA_ERROR_NOT_FOUND);
	OK(cuModuleGetGlobal_v2(&p, &size, module, "table"));
	EQUAL(size, 1048576);
	OK(cuMemsetD8_v2(p, 1, size));
	EQUAL(child_shown_mib(), 520);
	function = load("spin");
	OK(cuModuleUnload(module));
	EQUAL(child_shown_mib(), 518);
	EQUAL(spin(function, NULL, 1), CUDA_ERROR_INVALID_HANDLE);
	EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	EQUAL(cuModuleLoadData(&other, "no image at all"), CUDA_ERROR_INVALID_IMAGE);
}

TEST(a_kernel_takes_the_time_it_is_given)
{
	CUevent start, end;
	CUstream s;
	float ms;
	uint64_t began;

	child_context();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	OK(cuEventQuery(start));
	EQUAL(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	/* Work before it, so that the host's time does not come between. */
	OK(spin(load("spin"), s, 5 * MS));
	OK(cuEventRecord(start, s));
	began = machine_now_ns();
	for (int i = 0; i < 4; i++)
		OK(spin(load("spin"), s, 5 * MS));
	OK(cuEventRecord(end, s));
	IN_TIME(machine_now_ns() - began < 15 * MS);
	NOT_YET(cuStreamQuery(s));
	NOT_YET(cuEventQuery(end));
	NOT_YET(cuEventElapsedTime(&ms, start, end));
	OK(cuStreamSynchronize(s));
	CHECK(machine_now_ns() - began >= 20 * MS);
	OK(cuEventElapsedTime(&ms, start, end));
	IN_TIME(ms > 19.9f && ms < 22.0f);
	OK(cuStreamQuery(s));
}

TEST(a_launch_that_blocks_returns_when_its_kernel_is_done)
{
	CUfunction function;
	CUstream stream;

	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	child_context();
	function = load("spin");
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(spin(function, stream, 50 * MS));
	OK(cuStreamQuery(stream));
}

static float time_of(CUfunction function)
{
	char block[24] = {0};
	void *params[] = {block};
	CUevent start, end;
	float ms;

	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	/* Work before it, so that host time does not come between. */
	OK(spin(load("spin"), NULL, MS));
	OK(cuEventRecord(start, NULL));
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuEventRecord(end, NULL));
	OK(cuEventSynchronize(end));
	OK(cuEventElapsedTime(&ms, start, end));
	return ms;
}

TEST(durations_come_from_rule_comment_or_default)
{
	child_context();
	IN_TIME(time_of(load("noted")) == 3.0f);
	IN_TIME(time_of(load("plain")) == 0.01f);
	EQUAL(inject_set_kernel(child_machine(), "plain", 2 * MS), 0);
	EQUAL(inject_set_kernel(child_machine(), "noted", 1 * MS), 0);
	IN_TIME(time_of(load("plain")) == 2.0f);
	IN_TIME(time_of(load("noted")) == 1.0f);
	inject_clear_kernels(child_machine());
	IN_TIME(time_of(load("plain")) == 0.01f);
}

TEST(cooperative_launches_take_their_time)
{
	uint64_t duration = 4 * MS, began;
	unsigned int first = 0;
	void *params[] = {&first, &duration};
	CUDA_LAUNCH_PARAMS list = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params};
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};

	child_context();
	list.function = load("spin");
	OK(cuStreamCreate(&list.hStream, CU_STREAM_DEFAULT));
	began = machine_now_ns();
	OK(cuLaunchCooperativeKernel(list.function, 1, 1, 1, 32, 1, 1, 0, NULL, params));
	OK(cuLaunchCooperativeKernelMultiDevice(&list, 1, 0));
	OK(cuLaunchKernelEx(&config, list.function, params, NULL));
	OK(cuCtxSynchronize());
	CHECK(machine_now_ns() - began >= 12 * MS);
}

TEST(parameters_may_come_in_a_buffer)
{
	struct {
		uint32_t first;
		uint64_t duration_ns;
	} buffer = {0, 4 * MS};
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END};
	uint64_t began;

	child_context();
	began = machine_now_ns();
	OK(cuLaunchKernel(load("spin"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	OK(cuCtxSynchronize());
	CHECK(machine_now_ns() - began >= 4 * MS);
}

TEST(old_launches_take_what_the_function_was_told)
{
	uint64_t duration = 4 * MS, began;
	CUfunction function;

	child_context();
	function = load("spin");
	EQUAL(cuLaunch(function), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetBlockShape(function, 32, 2, 1));
	OK(cuFuncSetSharedSize(function, 1024));
	OK(cuParamSetSize(function, 16));
	OK(cuParamSeti(function, 0, 7));
	OK(cuParamSetv(function, 8, &duration, sizeof(duration)));
	EQUAL(cuParamSetv(function, 4090, &duration, 8), CUDA_ERROR_INVALID_VALUE);
	began = machine_now_ns();
	OK(cuLaunch(function));
	OK(cuLaunchGrid(function, 3, 3));
	OK(cuCtxSynchronize());
	CHECK(machine_now_ns() - began >= 8 * MS);
	EQUAL(cuLaunchGridAsync(function, 0, 3, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(bad_launches_are_refused)
{
	void *params[] = {&(unsigned int){0}, &(uint64_t){1}};
	CUfunction f;

	child_context();
	f = load("spin");
	EQUAL(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuLaunchKernel(f, 1, 1, 1, 1, 0, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuLaunchKernel(f, 1, 1, 1, 64, 32, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	OK(cuLaunchKernel_ptsz(f, 1, 1, 1, 1024, 1, 1, 0, NULL, params, NULL));
}

TEST(streams_order_themselves_as_cuda_says)
{
	CUstream free_running, blocking;
	CUevent event;
	CUfunction f;
	uint64_t began;

	child_context();
	f = load("spin");
	OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	began = machine_now_ns();
	OK(spin(f, blocking, 50 * MS));
	OK(cuStreamQuery(free_running));
	/* The legacy stream waits for the blocking one, and the next one for it. */
	NOT_YET(cuStreamQuery(CU_STREAM_LEGACY));
	OK(spin(f, NULL, 50 * MS));
	OK(spin(f, blocking, 50 * MS));
	OK(spin(f, free_running, 50 * MS));
	OK(cuStreamSynchronize(free_running));
	IN_TIME(machine_now_ns() - began < 100 * MS);
	OK(cuEventRecord(event, blocking));
	OK(cuStreamWaitEvent(free_running, event, 0));
	OK(cuStreamSynchronize(free_running));
	CHECK(machine_now_ns() - began >= 150 * MS);
	OK(cuStreamDestroy_v2(blocking));
	EQUAL(cuStreamSynchronize(blocking), CUDA_ERROR_INVALID_HANDLE);
}

static int called;
static uint64_t called_at;
static void note_call(void *user_data)
{
	called_at = machine_now_ns();
	__atomic_store_n(&called, *(int *)user_data, __ATOMIC_RELEASE);
}

TEST(host_functions_run_when_their_time_comes)
{
	int value = 42;
	uint64_t began;

	child_context();
	began = machine_now_ns();
	OK(spin(load("spin"), NULL, 5 * MS));
	OK(cuLaunchHostFunc(NULL, note_call, &value));
	IN_TIME(__atomic_load_n(&called, __ATOMIC_ACQUIRE) == 0);
	OK(cuStreamSynchronize(NULL));
	EQUAL(__atomic_load_n(&called, __ATOMIC_ACQUIRE), 42);
	CHECK(called_at - began >= 5 * MS);
}

TEST(a_stream_waits_for_a_word)
{
	CUstream waiting, writing;
	CUdeviceptr word;

	child_context();
	OK(cuMemAlloc_v2(&word, 16));
	OK(cuMemsetD32_v2(word, 0, 4));
	OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&writing, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32_v2(waiting, word, 7, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuStreamWriteValue64_v2(waiting, word + 8, UINT64_C(1) << 40, 0));
	EQUAL(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
	EQUAL(cuStreamQuery(writing), CUDA_SUCCESS);
	EQUAL(*(volatile uint64_t *)(uintptr_t)(word + 8), 0);
	OK(cuStreamWriteValue32_v2(writing, word, 8, 0));
	OK(cuStreamSynchronize(waiting));
	EQUAL(*(volatile uint64_t *)(uintptr_t)(word + 8), UINT64_C(1) << 40);
	/* Host functions of another stream are not held up, those of the waiting one are. */
	OK(cuStreamWaitValue64_v2(waiting, word + 8, 1, CU_STREAM_WAIT_VALUE_EQ));
	__atomic_store_n(&called, 0, __ATOMIC_RELEASE);
	OK(cuLaunchHostFunc(waiting, note_call, &(int){5}));
	OK(cuStreamWriteValue64_v2(writing, word + 8, 1, 0));
	OK(cuStreamSynchronize(waiting));
	EQUAL(__atomic_load_n(&called, __ATOMIC_ACQUIRE), 5);
}

TEST(operations_on_words_come_in_batches)
{
	CUstreamBatchMemOpParams ops[3] = {{0}};
	CUdeviceptr word;

	child_context();
	OK(cuMemAlloc_v2(&word, 8));
	OK(cuMemsetD32_v2(word, 0, 2));
	ops[0].waitValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].waitValue.address = word;
	ops[0].waitValue.value64 = 3;
	ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = word;
	ops[1].waitValue.value64 = 3;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	ops[2].operation = CU_STREAM_MEM_OP_BARRIER;
	OK(cuStreamBatchMemOp_v2(NULL, 3, ops, 0));
	OK(cuStreamSynchronize(NULL));
	EQUAL(*(volatile uint32_t *)(uintptr_t)word, 3);
	ops[2].operation = 9;
	EQUAL(cuStreamBatchMemOp_v2(NULL, 3, ops, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuStreamWriteValue32_v2(NULL, word + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuStreamWaitValue32_v2(NULL, word, 1, 8), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuStreamWriteValue32_v2(NULL, 16, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(work_shows_as_utilisation)
{
	struct machine_snapshot *snap = malloc(sizeof(*snap));

	child_context();
	OK(cuCtxSynchronize());
	for (int i = 0; i < 5; i++)
		OK(spin(load("spin"), NULL, 10 * MS));
	OK(cuCtxSynchronize());
	CHECK(snap);
	EQUAL(machine_read_snapshot(child_machine(), 100 * MS, snap), 0);
	IN_TIME(snap->device[0].busy_permille >= 400 && snap->device[0].busy_permille <= 510);
	CHECK(snap->device[0].busy_ns >= 50 * MS && snap->device[0].busy_ns < 51 * MS);
	free(snap);
}

TEST(a_long_queue_shows_as_full_utilisation)
{
	struct machine_snapshot *snap = malloc(sizeof(*snap));
	uint64_t began;

	child_context();
	CHECK(snap);
	began = machine_now_ns();
	for (int i = 0; i < 3000; i++)
		OK(spin(load("spin"), NULL, 10 * MS));
	while (machine_now_ns() - began < 60 * MS)
		;
	EQUAL(machine_read_snapshot(child_machine(), 40 * MS, snap), 0);
	IN_TIME(snap->device[0].busy_permille > 950);
	CHECK(snap->device[0].busy_ns < 1000 * MS);
	free(snap);
}

TEST(a_pool_does_not_lend_what_is_freed_later)
{
	CUstream busy, idle;
	CUdeviceptr p, q, r;

	child_context();
	OK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocAsync(&p, MiB, busy));
	OK(spin(load("spin"), busy, 5 * MS));
	OK(cuMemFreeAsync(p, busy));
	OK(cuMemAllocAsync(&q, MiB, idle));
	IN_TIME(q != p);
	OK(cuMemAllocAsync(&r, MiB, busy));
	EQUAL(r, p);
	OK(cuMemFreeAsync(r, busy));
	OK(cuStreamSynchronize(busy));
	OK(cuMemAllocAsync(&r, MiB, idle));
	EQUAL(r, p);
}

TEST(plain_memory_that_a_stream_frees_goes_when_the_stream_is_there)
{
	size_t before, after, total;
	CUstream busy;
	CUdeviceptr p;

	child_context();
	OK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 64 * MiB));
	OK(spin(load("spin"), busy, 50 * MS));
	OK(cuMemGetInfo_v2(&before, &total));
	OK(cuMemFreeAsync(p, busy));
	OK(cuMemGetInfo_v2(&after, &total));
	IN_TIME(after == before);
	EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(busy));
	OK(cuMemGetInfo_v2(&after, &total));
	EQUAL(after, before + 64 * MiB);
	/* An idle stream is there already. */
	OK(cuMemAlloc_v2(&p, 64 * MiB));
	OK(cuMemFreeAsync(p, busy));
	OK(cuMemGetInfo_v2(&after, &total));
	EQUAL(after, before + 64 * MiB);
}

TEST(injected_faults_come_at_the_call_they_are_set_for)
{
	struct inject_rule rule = {.symbol = "cuMemAlloc_v2",
		.tag = "*",
		.skip = 1,
		.times = 1,
		.result = CUDA_ERROR_OUT_OF_MEMORY};
	struct inject_rule read_back;
	uint64_t hits, began;
	CUdeviceptr p;

	child_context();
	EQUAL(inject_add_rule(child_machine(), &rule), 0);
	OK(cuMemAlloc_v2(&p, 100));
	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&p, 100));
	EQUAL(inject_read_rule(child_machine(), 0, &read_back, &hits), 0);
	EQUAL(hits, 1);
	inject_clear_rules(child_machine());
	rule = (struct inject_rule){.symbol = "cuMemFree_v2", .tag = "test", .delay_ns = 3 * MS};
	EQUAL(inject_add_rule(child_machine(), &rule), 0);
	began = machine_now_ns();
	OK(cuMemFree_v2(p));
	CHECK(machine_now_ns() - began >= 3 * MS);
	strcpy(rule.tag, "others");
	inject_clear_rules(child_machine());
	rule.result = CUDA_ERROR_UNKNOWN;
	EQUAL(inject_add_rule(child_machine(), &rule), 0);
	OK(cuMemFree_v2(0));
	strcpy(rule.symbol, "cuNoSuch");
	CHECK(inject_add_rule(child_machine(), &rule) < 0);
}

TEST(calls_are_counted_by_symbol)
{
	CUdeviceptr p;
	int call = call_find("cuMemAlloc_v2");

	child_context();
	CHECK(call >= 0);
	EQUAL(inject_read_count(child_machine(), (unsigned int)call), 0);
	OK(cuMemAlloc_v2(&p, 100));
	OK(cuMemAlloc_v2(&p, 100));
	EQUAL(inject_read_count(child_machine(), (unsigned int)call), 2);
	machine_reset(child_machine());
	EQUAL(inject_read_count(child_machine(), (unsigned int)call), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_have_the_kernels_and_globals_of_their_text),
		cmocka_unit_test(a_kernel_takes_the_time_it_is_given),
		cmocka_unit_test(a_launch_that_blocks_returns_when_its_kernel_is_done),
		cmocka_unit_test(durations_come_from_rule_comment_or_default),
		cmocka_unit_test(cooperative_launches_take_their_time),
		cmocka_unit_test(parameters_may_come_in_a_buffer),
		cmocka_unit_test(old_launches_take_what_the_function_was_told),
		cmocka_unit_test(bad_launches_are_refused),
		cmocka_unit_test(streams_order_themselves_as_cuda_says),
		cmocka_unit_test(host_functions_run_when_their_time_comes),
		cmocka_unit_test(a_stream_waits_for_a_word),
		cmocka_unit_test(operations_on_words_come_in_batches),
		cmocka_unit_test(work_shows_as_utilisation),
		cmocka_unit_test(a_long_queue_shows_as_full_utilisation),
		cmocka_unit_test(a_pool_does_not_lend_what_is_freed_later),
		cmocka_unit_test(plain_memory_that_a_stream_frees_goes_when_the_stream_is_there),
		cmocka_unit_test(injected_faults_come_at_the_call_they_are_set_for),
		cmocka_unit_test(calls_are_counted_by_symbol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
