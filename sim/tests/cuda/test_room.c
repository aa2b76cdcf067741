/* SPDX-License-Identifier: Apache-2.0 */
/* What contexts keep for frames of threads and for streams; the numbers are those measured on an H200. */
#include "sim/tests/cuda/child.h"

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry empty() { ret; }\n"
	".visible .entry f600() {\n\t.local .align 8 .b8 \t__local_depot0[600];\n\tret;\n}\n"
	".visible .entry f2k() { .local .align 16 .b8 depot[2048]; ret; }\n"
	".visible .entry f5k()\n.maxntid 256, 1, 1\n{ .local .b8 a[4999];\n"
	"{ .local .b8 b[1]; ld.local.u32 %r1, [a]; } ret; }\n"
	"// vgpu-sim frame_bytes=16384 duration_ns=1000\n"
	".visible .entry f16k() { ret; }\n"
	"// vgpu-sim duration_ns=1000\n"
	"// vgpu-sim frame_bytes=65536\n"
	".visible .entry f64k() { ret; }\n";

static CUfunction load(const char *name)
{
	CUfunction function;
	CUmodule module;

	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUresult launch(const char *name)
{
	return cuLaunchKernel(load(name), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult launch_with(const char *name, int way)
{
	CUfunction function = load(name);
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
	CUDA_LAUNCH_PARAMS one = {function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL};
	static CUstream stream;

	OK(cuFuncSetBlockShape(function, 32, 1, 1));
	switch (way) {
	case 0:
		return cuLaunch(function);
	case 1:
		return cuLaunchGrid(function, 2, 2);
	case 2:
		return cuLaunchGridAsync(function, 1, 1, CU_STREAM_PER_THREAD);
	case 3:
		return cuLaunchKernelEx(&config, function, NULL, NULL);
	case 4:
		return cuLaunchKernelEx_ptsz(&config, function, NULL, NULL);
	case 5:
		return cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
	case 6:
		return cuLaunchCooperativeKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
	case 7:
		return cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	default:
		if (!stream)
			OK(cuStreamCreate(&stream, 0));
		one.hStream = stream;
		return cuLaunchCooperativeKernelMultiDevice(&one, 1, 0);
	}
}

static size_t stack_limit(void)
{
	size_t bytes;

	OK(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
	return bytes;
}

static void expect(size_t limit, uint64_t shown_mib)
{
	EQUAL(stack_limit(), limit);
	EQUAL(child_shown_mib(), shown_mib);
	EQUAL(child_kind_mib(MACHINE_LOCAL), shown_mib - 518);
}

static int frame_of(const char *name)
{
	int bytes = -1;

	OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, load(name)));
	return bytes;
}

TEST(kernels_tell_their_frames)
{
	child_context();
	EQUAL(frame_of("empty"), 0);
	EQUAL(frame_of("f600"), 600);
	EQUAL(frame_of("f2k"), 2048);
	EQUAL(frame_of("f5k"), 5000);
	EQUAL(frame_of("f16k"), 16384);
	EQUAL(frame_of("f64k"), 65536);
	expect(1024, 518);
}

TEST(a_launch_makes_room_for_its_frames_and_it_stays)
{
	child_context();
	OK(launch("empty"));
	OK(launch("f600"));
	expect(1024, 518);
	OK(launch("f2k"));
	expect(2048, 782);
	OK(launch("f5k"));
	expect(5000, 1544);
	OK(launch("f16k"));
	expect(16384, 4478);
	OK(launch("f64k"));
	expect(65536, 17150);
	OK(launch("f2k"));
	expect(65536, 17150);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
	expect(1024, 518);
}

TEST(every_way_to_launch_makes_room)
{
	child_context();
	for (int way = 0; way < 9; way++) {
		OK(launch_with("f600", way));
		expect(1024, 518);
		OK(launch_with("f16k", way));
		expect(16384, 4478);
		OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
	}
}

TEST(streams_take_memory_at_some_of_them_and_keep_it)
{
	static const unsigned int at[] = {2, 6, 10, 14, 18, 22, 26, 30, 34, 36, 38, 42, 46, 50, 54,
		58, 62, 66, 70, 74, 78, 79, 82, 86, 90, 94, 98};
	CUstream streams[100];
	uint64_t seen = 518;
	size_t next = 0;

	child_context();
	for (unsigned int i = 1; i <= 100; i++) {
		if (i % 2)
			OK(cuStreamCreate(&streams[i - 1], i % 2));
		else
			OK(cuStreamCreateWithPriority(&streams[i - 1], 1, -1));
		if (next < sizeof(at) / sizeof(at[0]) && at[next] == i) {
			seen += 2;
			next++;
		}
		EQUAL(child_shown_mib(), seen);
	}
	EQUAL(seen, 518 + 54);
	for (int i = 0; i < 100; i++)
		OK(cuStreamDestroy_v2(streams[i]));
	EQUAL(child_kind_mib(MACHINE_STREAM), 54);
	for (int i = 0; i < 100; i++)
		OK(cuStreamCreate(&streams[i], 0));
	EQUAL(child_kind_mib(MACHINE_STREAM), 54);
	OK(cuDevicePrimaryCtxReset_v2(0));
	EQUAL(child_kind_mib(MACHINE_STREAM), 0);
	child_context();
	OK(cuStreamCreate(&streams[0], 0));
	EQUAL(child_kind_mib(MACHINE_STREAM), 0);
	OK(cuStreamCreate(&streams[0], 0));
	EQUAL(child_kind_mib(MACHINE_STREAM), 2);
}

TEST(the_stack_limit_makes_room_and_gives_it_back)
{
	child_context();
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
	expect(2048, 782);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
	expect(8192, 2366);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 3000));
	expect(3000, 1028);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536));
	expect(65536, 17150);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 512));
	expect(512, 518);
	EQUAL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 30), CUDA_ERROR_INVALID_VALUE);
	expect(512, 518);
}

TEST(loading_makes_no_room)
{
	child_context();
	OK(cuFuncLoad(load("f16k")));
	expect(1024, 518);
}

TEST(every_context_has_its_own_room_until_it_ends)
{
	CUcontext context;

	child_context();
	OK(cuCtxCreate_v2(&context, 0, 0));
	OK(launch("f16k"));
	EQUAL(child_shown_mib(), 1036 + 3960);
	OK(cuCtxDestroy_v2(context));
	expect(1024, 518);
	OK(launch("f16k"));
	expect(16384, 4478);
	OK(cuDevicePrimaryCtxReset_v2(0));
	child_context();
	expect(1024, 518);
}

TEST(a_launch_without_memory_for_its_frames_fails)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr p;

	child_context();
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	OK(cuMemAlloc_v2(&p, free_bytes - 4000 * MiB));
	EQUAL(launch("f64k"), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(stack_limit(), 1024);
	OK(launch("f16k"));
	EQUAL(stack_limit(), 16384);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_tell_their_frames),
		cmocka_unit_test(a_launch_makes_room_for_its_frames_and_it_stays),
		cmocka_unit_test(every_way_to_launch_makes_room),
		cmocka_unit_test(streams_take_memory_at_some_of_them_and_keep_it),
		cmocka_unit_test(the_stack_limit_makes_room_and_gives_it_back),
		cmocka_unit_test(loading_makes_no_room),
		cmocka_unit_test(every_context_has_its_own_room_until_it_ends),
		cmocka_unit_test(a_launch_without_memory_for_its_frames_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
