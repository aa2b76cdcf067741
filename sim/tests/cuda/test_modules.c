/* SPDX-License-Identifier: Apache-2.0 */
/* What modules and libraries take, and when; the numbers are those measured on an H200. */
#include "sim/tests/cuda/child.h"

#include <string.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char plain_ptx[] = HEAD ".visible .entry empty() { ret; }\n"
				     ".visible .entry other() { ret; }\n";
static const char data_ptx[] = HEAD ".global .align 4 .b8 big[268435456];\n"
				    ".global .align 4 .b8 small[100];\n"
				    ".visible .entry touch() { ret; }\n";
static const char heap_ptx[] = HEAD ".extern .func (.param .b64 r) malloc (.param .b64 a);\n"
				    ".extern .func free (.param .b64 a);\n"
				    ".visible .entry heap() { ret; }\n";
static const char printf_ptx[] = HEAD "// vgpu-sim uses=printf\n"
				      ".visible .entry pr() { ret; }\n";
static const char managed_ptx[] =
	HEAD ".visible .global .attribute(.managed) .align 4 .b8 shared_[67108864];\n"
	     ".global .u32 counter;\n"
	     ".visible .entry tm() { ret; }\n";
static const char code_ptx[] = HEAD "// vgpu-sim code_bytes=3000000\n"
				    ".visible .entry big() { ret; }\n";

static const char fault_ptx[] = HEAD "// vgpu-sim faults=1\n"
				     ".visible .entry stray() { ret; }\n";

static CUmodule load(const char *text)
{
	CUmodule module;

	OK(cuModuleLoadData(&module, text));
	return module;
}

static CUresult launch(CUfunction function)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult launch_of(CUmodule module, const char *name)
{
	CUfunction function;

	OK(cuModuleGetFunction(&function, module, name));
	return launch(function);
}

static CUlibrary load_library(const char *text)
{
	CUlibrary library;

	OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	return library;
}

TEST(variables_take_memory_while_their_module_is_loaded)
{
	CUdeviceptr big, small, base;
	CUmodule module;
	size_t bytes;

	child_context();
	module = load(data_ptx);
	EQUAL(child_shown_mib(), 776);
	EQUAL(child_kind_mib(MACHINE_MODULE), 258);
	OK(cuModuleGetGlobal_v2(&big, &bytes, module, "big"));
	EQUAL(bytes, 268435456);
	OK(cuModuleGetGlobal_v2(&small, &bytes, module, "small"));
	EQUAL(small, big + 268435456);
	OK(cuMemsetD8_v2(small, 1, 100));
	OK(cuMemGetAddressRange_v2(&base, &bytes, small));
	EQUAL(base, big);
	OK(launch_of(module, "touch"));
	OK(cuModuleUnload(module));
	EQUAL(child_shown_mib(), 518);
}

TEST(a_library_takes_memory_where_it_is_first_used)
{
	CUfunction function;
	CUlibrary library;
	CUdeviceptr p, q;
	CUcontext primary, other;
	CUkernel kernel;
	CUmodule module, again;
	size_t bytes;

	primary = child_context();
	library = load_library(data_ptx);
	OK(cuLibraryGetKernel(&kernel, library, "touch"));
	EQUAL(child_shown_mib(), 518);
	OK(cuLibraryGetGlobal(&p, &bytes, library, "big"));
	EQUAL(bytes, 268435456);
	EQUAL(child_shown_mib(), 776);
	OK(cuKernelGetFunction(&function, kernel));
	OK(launch(function));
	OK(cuLibraryGetModule(&module, library));
	OK(cuFuncGetModule(&again, function));
	CHECK(module == again);
	EQUAL(child_shown_mib(), 776);
	OK(cuCtxCreate_v2(&other, 0, 0));
	EQUAL(child_shown_mib(), 776 + 518);
	EQUAL(launch(function), CUDA_ERROR_INVALID_HANDLE);
	OK(launch((CUfunction)kernel));
	EQUAL(child_shown_mib(), 776 + 776);
	OK(cuLibraryGetGlobal(&q, NULL, library, "big"));
	CHECK(p != q);
	OK(cuCtxSetCurrent(primary));
	OK(cuLibraryUnload(library));
	EQUAL(child_shown_mib(), 518 + 518);
	EQUAL(launch((CUfunction)kernel), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_library_fails_at_its_first_use_without_memory)
{
	size_t free_bytes, total_bytes;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUdeviceptr p;

	child_context();
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	OK(cuMemAlloc_v2(&p, free_bytes - 100 * MiB));
	library = load_library(data_ptx);
	OK(cuLibraryGetKernel(&kernel, library, "touch"));
	EQUAL(cuKernelGetFunction(&function, kernel), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(launch((CUfunction)kernel), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(p));
	OK(launch((CUfunction)kernel));
}

TEST(device_malloc_takes_its_heap_at_the_first_launch)
{
	CUmodule module;
	size_t limit;

	child_context();
	OK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
	EQUAL(limit, 8388608);
	OK(launch_of(load(plain_ptx), "empty"));
	EQUAL(child_shown_mib(), 518);
	module = load(heap_ptx);
	EQUAL(child_shown_mib(), 656);
	OK(launch_of(module, "heap"));
	EQUAL(child_shown_mib(), 666);
	OK(launch_of(load(heap_ptx), "heap"));
	OK(cuModuleUnload(module));
	EQUAL(child_shown_mib(), 666);
	EQUAL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 30), CUDA_ERROR_INVALID_VALUE);
	OK(cuDevicePrimaryCtxReset_v2(0));
	child_context();
	EQUAL(child_shown_mib(), 518);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 30));
	EQUAL(child_shown_mib(), 518);
	module = load(heap_ptx);
	EQUAL(child_shown_mib(), 656);
	OK(launch_of(module, "heap"));
	EQUAL(child_shown_mib(), 1682);
	EQUAL(child_kind_mib(MACHINE_MODULE), 1164);
}

TEST(device_printf_takes_its_part_at_the_load)
{
	CUmodule module;

	child_context();
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 256 << 20));
	module = load(printf_ptx);
	EQUAL(child_shown_mib(), 582);
	OK(launch_of(module, "pr"));
	OK(cuModuleUnload(module));
	load(printf_ptx);
	EQUAL(child_shown_mib(), 582);
	OK(cuDevicePrimaryCtxReset_v2(0));
	EQUAL(child_kind_mib(MACHINE_MODULE), 0);
}

TEST(a_library_with_device_malloc_takes_it_with_its_function)
{
	CUfunction function;
	CUlibrary library;
	CUkernel kernel;

	child_context();
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 30));
	library = load_library(heap_ptx);
	OK(cuLibraryGetKernel(&kernel, library, "heap"));
	EQUAL(child_shown_mib(), 518);
	OK(cuKernelGetFunction(&function, kernel));
	EQUAL(child_shown_mib(), 656);
	OK(launch(function));
	EQUAL(child_shown_mib(), 1682);
}

TEST(managed_variables_are_on_the_device_and_shown_for_nobody)
{
	CUlibrary library;
	CUmodule module;
	CUdeviceptr p;
	size_t bytes;

	child_context();
	module = load(managed_ptx);
	EQUAL(child_kind_mib(MACHINE_MANAGED), 64);
	EQUAL(child_shown_mib(), 520);
	OK(cuModuleGetGlobal_v2(&p, &bytes, module, "shared_"));
	EQUAL(bytes, 67108864);
	OK(launch_of(module, "tm"));
	OK(cuModuleUnload(module));
	EQUAL(child_kind_mib(MACHINE_MANAGED), 0);
	EQUAL(child_shown_mib(), 518);
	library = load_library(managed_ptx);
	EQUAL(cuLibraryGetManaged(&p, &bytes, library, "counter"), CUDA_ERROR_NOT_FOUND);
	OK(cuLibraryGetManaged(&p, &bytes, library, "shared_"));
	EQUAL(child_kind_mib(MACHINE_MANAGED), 64);
	OK(cuLibraryUnload(library));
	EQUAL(child_kind_mib(MACHINE_MANAGED), 0);
}

TEST(code_takes_memory_beyond_what_the_context_has)
{
	CUmodule modules[4];

	child_context();
	modules[0] = load(code_ptx);
	EQUAL(child_shown_mib(), 518);
	modules[1] = load(code_ptx);
	EQUAL(child_shown_mib(), 520);
	modules[2] = load(code_ptx);
	modules[3] = load(code_ptx);
	EQUAL(child_shown_mib(), 526);
	for (int i = 0; i < 4; i++)
		OK(cuModuleUnload(modules[i]));
	EQUAL(child_shown_mib(), 526);
	load(code_ptx);
	load(code_ptx);
	EQUAL(child_shown_mib(), 526);
	OK(cuDevicePrimaryCtxReset_v2(0));
	EQUAL(child_kind_mib(MACHINE_MODULE), 0);
}

TEST(kernels_are_counted_and_listed)
{
	CUlibrary library;
	CUfunction functions[3];
	CUkernel kernels[3] = {NULL}, one;
	CUmodule module;
	unsigned int count;

	child_context();
	module = load(plain_ptx);
	OK(cuModuleGetFunctionCount(&count, module));
	EQUAL(count, 2);
	OK(cuModuleEnumerateFunctions(functions, 3, module));
	OK(launch(functions[0]));
	OK(launch(functions[1]));
	library = load_library(plain_ptx);
	OK(cuLibraryGetKernelCount(&count, library));
	EQUAL(count, 2);
	OK(cuLibraryEnumerateKernels(kernels, 1, library));
	CHECK(!kernels[1]);
	OK(cuLibraryEnumerateKernels(kernels, 3, library));
	OK(cuLibraryGetKernel(&one, library, "other"));
	CHECK(kernels[1] == one);
	EQUAL(cuLibraryEnumerateKernels(kernels, 3, (CUlibrary)module), CUDA_ERROR_INVALID_HANDLE);
}

/* Of libraries that come and go. One that has just ended is refused. */
TEST(handles_come_again_soon_after_their_code_was_unloaded)
{
	CUlibrary first, library;
	CUkernel first_kernel, kernel;
	bool has_library = false, has_kernel = false;
	unsigned count;

	OK(cuInit(0));
	first = load_library(plain_ptx);
	OK(cuLibraryGetKernel(&first_kernel, first, "empty"));
	OK(cuLibraryUnload(first));
	EQUAL(cuLibraryGetKernelCount(&count, first), CUDA_ERROR_INVALID_HANDLE);
	for (int i = 0; i < 10; i++) {
		library = load_library(plain_ptx);
		OK(cuLibraryGetKernel(&kernel, library, "empty"));
		has_library |= library == first;
		has_kernel |= kernel == first_kernel;
		OK(cuLibraryUnload(library));
	}
	CHECK(has_library && has_kernel);
}

TEST(the_linker_makes_one_image_of_several_texts)
{
	CUlinkState state;
	CUmodule module;
	char text[sizeof(data_ptx)];
	void *image;
	size_t bytes;

	child_context();
	OK(cuLinkCreate_v2(0, NULL, NULL, &state));
	EQUAL(cuLinkComplete(state, &image, &bytes), CUDA_ERROR_INVALID_IMAGE);
	memcpy(text, plain_ptx, sizeof(plain_ptx));
	OK(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, sizeof(plain_ptx), "a", 0, NULL, NULL));
	memcpy(text, data_ptx, sizeof(data_ptx));
	OK(cuLinkAddData_v2(
		state, CU_JIT_INPUT_PTX, text, sizeof(data_ptx) - 1, "b", 0, NULL, NULL));
	EQUAL(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)"no image", 8, "c", 0, NULL, NULL),
		CUDA_ERROR_INVALID_IMAGE);
	OK(cuLinkComplete(state, &image, &bytes));
	OK(cuModuleLoadData(&module, image));
	OK(cuLinkDestroy(state));
	EQUAL(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
	OK(launch_of(module, "empty"));
	OK(launch_of(module, "touch"));
	EQUAL(child_shown_mib(), 776);
}

TEST(a_context_that_a_kernel_broke_says_so_until_it_ends)
{
	CUcontext context;
	CUdeviceptr p;

	child_context();
	OK(cuCtxCreate_v2(&context, 0, 0));
	OK(cuMemAlloc_v2(&p, 64 << 20));
	OK(launch_of(load(fault_ptx), "stray"));
	EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	EQUAL(cuCtxDestroy_v2(context), CUDA_ERROR_ILLEGAL_ADDRESS);
	EQUAL(child_shown_mib(), 518);
	OK(launch_of(load(fault_ptx), "stray"));
	EQUAL(cuDevicePrimaryCtxReset_v2(0), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuMemAlloc_v2(&p, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_take_memory_while_their_module_is_loaded),
		cmocka_unit_test(a_library_takes_memory_where_it_is_first_used),
		cmocka_unit_test(a_library_fails_at_its_first_use_without_memory),
		cmocka_unit_test(device_malloc_takes_its_heap_at_the_first_launch),
		cmocka_unit_test(device_printf_takes_its_part_at_the_load),
		cmocka_unit_test(a_library_with_device_malloc_takes_it_with_its_function),
		cmocka_unit_test(managed_variables_are_on_the_device_and_shown_for_nobody),
		cmocka_unit_test(code_takes_memory_beyond_what_the_context_has),
		cmocka_unit_test(kernels_are_counted_and_listed),
		cmocka_unit_test(handles_come_again_soon_after_their_code_was_unloaded),
		cmocka_unit_test(the_linker_makes_one_image_of_several_texts),
		cmocka_unit_test(a_context_that_a_kernel_broke_says_so_until_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
