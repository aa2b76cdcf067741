/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts; the numbers are those measured on an H200. */
#include "sim/tests/cuda/child.h"

#define MS UINT64_C(1000000)

static CUdevResourceDesc make_desc(unsigned int least)
{
	CUdevResource all, part;
	CUdevResourceDesc desc;
	unsigned int count = 1;

	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	EQUAL(all.sm.smCount, 132);
	OK(cuDevSmResourceSplitByCount(&part, &count, &all, NULL, 0, least));
	EQUAL(count, 1);
	OK(cuDevResourceGenerateDesc(&desc, &part, 1));
	return desc;
}

static CUgreenCtx make(void)
{
	CUgreenCtx green;

	OK(cuGreenCtxCreate(&green, make_desc(40), 0, CU_GREEN_CTX_DEFAULT_STREAM));
	return green;
}

TEST(multiprocessors_are_split_in_groups)
{
	CUdevResource all, parts[20], rest, none = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
	unsigned int count;

	child_context();
	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 40));
	EQUAL(count, 3);
	count = 2;
	OK(cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, 33));
	EQUAL(count, 2);
	EQUAL(parts[1].sm.smCount, 40);
	EQUAL(rest.sm.smCount, 52);
	count = 20;
	OK(cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, 0));
	EQUAL(count, 16);
	EQUAL(parts[0].sm.smCount, 8);
	EQUAL(rest.sm.smCount, 4);
	EQUAL(cuDevSmResourceSplitByCount(parts, &count, &all, NULL, 0, 200),
		CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	EQUAL(cuDevSmResourceSplitByCount(parts, &count, &none, NULL, 0, 8),
		CUDA_ERROR_INVALID_RESOURCE_TYPE);
	EQUAL(cuDeviceGetDevResource(0, &all, (CUdevResourceType)7),
		CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST(each_takes_some_mib_and_they_stay)
{
	static const uint64_t made[] = {6, 4, 4, 6}, streamed[] = {0, 2, 0, 0};
	CUgreenCtx green[4];
	uint64_t seen = 518;
	CUstream stream;

	child_context();
	for (int i = 0; i < 4; i++) {
		green[i] = make();
		seen += made[i];
		EQUAL(child_shown_mib(), seen);
		OK(cuGreenCtxStreamCreate(&stream, green[i], CU_STREAM_NON_BLOCKING, 0));
		seen += streamed[i];
		EQUAL(child_shown_mib(), seen);
	}
	EQUAL(seen, 540);
	for (int i = 0; i < 4; i++)
		OK(cuGreenCtxDestroy(green[i]));
	EQUAL(cuGreenCtxDestroy(green[0]), CUDA_ERROR_INVALID_HANDLE);
	EQUAL(child_shown_mib(), 540);
	OK(cuDevicePrimaryCtxReset_v2(0));
	EQUAL(child_shown_mib(), 0);
	child_context();
	EQUAL(child_shown_mib(), 518);
}

TEST(what_is_allocated_in_it_belongs_to_the_primary_context)
{
	CUcontext primary = child_context(), context, of, current;
	CUgreenCtx green = make(), of_green;
	unsigned long long id, green_id, primary_id;
	CUdevResource resource;
	CUstream stream;
	CUdeviceptr p;

	OK(cuCtxFromGreenCtx(&context, green));
	CHECK(context != primary);
	OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	EQUAL(cuGreenCtxStreamCreate(&stream, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamGetCtx(stream, &of));
	CHECK(of == context);
	OK(cuStreamGetCtx_v2(stream, &of, &of_green));
	CHECK(!of && of_green == green);
	OK(cuStreamGetGreenCtx(NULL, &of_green));
	CHECK(!of_green);
	OK(cuCtxPushCurrent_v2(context));
	OK(cuCtxGetCurrent(&current));
	CHECK(current == context);
	OK(cuStreamGetGreenCtx(NULL, &of_green));
	CHECK(of_green == green);
	OK(cuCtxGetDevResource(NULL, &resource, CU_DEV_RESOURCE_TYPE_SM));
	EQUAL(resource.sm.smCount, 40);
	OK(cuCtxGetId(NULL, &id));
	OK(cuGreenCtxGetId(green, &green_id));
	OK(cuCtxGetId(primary, &primary_id));
	EQUAL(id, green_id);
	CHECK(id != primary_id);
	OK(cuMemAlloc_v2(&p, 10 * MiB));
	OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CHECK(of == primary);
	EQUAL(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxPopCurrent_v2(&current));
	CHECK(current == context);
	OK(cuGreenCtxDestroy(green));
	EQUAL(cuCtxSetCurrent(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuMemFree_v2(p));
}

TEST(it_keeps_the_primary_context_alive)
{
	CUcontext context;
	CUgreenCtx green;
	CUdeviceptr p;

	OK(cuInit(0));
	green = make();
	EQUAL(child_shown_mib(), 524);
	OK(cuCtxFromGreenCtx(&context, green));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&p, 10 * MiB));
	OK(cuGreenCtxDestroy(green));
	EQUAL(cuMemAlloc_v2(&p, 10 * MiB), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EQUAL(child_used_mib(), 3);
}

TEST(events_stand_for_all_work_of_a_green_context)
{
	static const char ptx[] = ".version 7.0\n.target sm_90\n"
				  "// vgpu-sim duration_ns=10000000\n"
				  ".visible .entry k() { ret; }\n";
	CUgreenCtx one, two;
	CUstream s1, s2;
	CUmodule module;
	CUfunction k;
	CUevent event;
	uint64_t began;

	child_context();
	one = make();
	two = make();
	OK(cuGreenCtxStreamCreate(&s1, one, CU_STREAM_NON_BLOCKING, 0));
	OK(cuGreenCtxStreamCreate(&s2, two, CU_STREAM_NON_BLOCKING, 0));
	OK(cuEventCreate(&event, 0));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&k, module, "k"));
	began = machine_now_ns();
	OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, s1, NULL, NULL));
	OK(cuGreenCtxRecordEvent(two, event));
	OK(cuEventSynchronize(event));
	IN_TIME(machine_now_ns() - began < 10 * MS);
	OK(cuGreenCtxRecordEvent(one, event));
	NOT_YET(cuEventQuery(event));
	OK(cuGreenCtxWaitEvent(two, event));
	OK(cuStreamSynchronize(s2));
	CHECK(machine_now_ns() - began >= 10 * MS);
	OK(cuCtxRecordEvent(NULL, event));
	OK(cuCtxWaitEvent(NULL, event));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multiprocessors_are_split_in_groups),
		cmocka_unit_test(each_takes_some_mib_and_they_stay),
		cmocka_unit_test(what_is_allocated_in_it_belongs_to_the_primary_context),
		cmocka_unit_test(it_keeps_the_primary_context_alive),
		cmocka_unit_test(events_stand_for_all_work_of_a_green_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
