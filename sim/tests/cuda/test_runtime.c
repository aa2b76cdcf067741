/* SPDX-License-Identifier: Apache-2.0 */
/* libcudart.so.12 and .13 of the simulated node, called as a compiler's code calls NVIDIA's. */
#include "sim/tests/cuda/child.h"

#include <string.h>

struct size {
	unsigned int x, y, z;
};

struct pointer {
	int type, device;
	void *device_pointer, *host_pointer;
	long reserved[8];
};

typedef CUresult cudaError_t;
extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFatBinaryEnd(void **handle);
extern void __cudaUnregisterFatBinary(void **handle);
extern void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp);
extern void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
	int is_extern, size_t bytes, int is_constant, int is_global);
extern unsigned int __cudaPushCallConfiguration(
	struct size grid, struct size block, size_t shared_bytes, CUstream stream);
extern cudaError_t __cudaPopCallConfiguration(
	struct size *grid, struct size *block, size_t *shared_bytes, CUstream *stream);
extern cudaError_t cudaLaunchKernel(const void *host, struct size grid, struct size block,
	void **params, size_t shared_bytes, CUstream stream);
extern cudaError_t cudaDeviceSynchronize(void);
extern cudaError_t cudaDeviceReset(void);
extern cudaError_t cudaGetDeviceCount(int *count);
extern cudaError_t cudaSetDevice(int device);
extern cudaError_t cudaGetDevice(int *device);
extern cudaError_t cudaMalloc(void **pointer, size_t bytes);
extern cudaError_t cudaFree(void *pointer);
extern cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
extern cudaError_t cudaMemcpyToSymbol(
	const void *symbol, const void *from, size_t bytes, size_t offset, int kind);
extern cudaError_t cudaGetSymbolAddress(void **address, const void *symbol);
extern cudaError_t cudaMemset(void *pointer, int value, size_t bytes);
extern cudaError_t cudaPointerGetAttributes(struct pointer *attributes, const void *pointer);
extern cudaError_t cudaGetLastError(void);
extern cudaError_t cudaPeekAtLastError(void);
extern cudaError_t cudaMallocArray(void);
extern const char *cudaGetErrorName(cudaError_t error);

static char kernel_host[16], other_host[16], table_host[16];

static void bring_code(void)
{
	void **handle = __cudaRegisterFatBinary(NULL);

	__cudaRegisterFunction(
		handle, kernel_host, NULL, "_Z6kernelPf", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, table_host, NULL, "table", 0, 4096, 0, 1);
	__cudaRegisterFatBinaryEnd(handle);
}

TEST(a_kernel_of_the_program_runs_for_as_long_as_it_is_told)
{
	struct size grid = {4, 1, 1}, block = {32, 1, 1}, none = {0, 0, 0};
	CUstream stream = (CUstream)1;
	size_t shared_bytes = 1;
	uint64_t began;

	bring_code();
	inject_set_kernel(child_machine(), "_Z6kernelPf", 5000000);
	EQUAL(__cudaPushCallConfiguration(grid, block, 64, NULL), 0);
	OK(__cudaPopCallConfiguration(&none, &grid, &shared_bytes, &stream));
	CHECK(none.x == 4 && grid.x == 32 && shared_bytes == 64 && !stream);
	OK(cudaDeviceSynchronize());
	began = machine_now_ns();
	OK(cudaLaunchKernel(kernel_host, none, block, NULL, 0, NULL));
	OK(cudaLaunchKernel(kernel_host, none, block, NULL, 0, NULL));
	OK(cudaDeviceSynchronize());
	CHECK(machine_now_ns() - began >= 10000000);
	EQUAL(cudaLaunchKernel(other_host, none, block, NULL, 0, NULL), 98);
	EQUAL(cudaPeekAtLastError(), 98);
	EQUAL(cudaGetLastError(), 98);
	OK(cudaGetLastError());
}

TEST(memory_is_where_the_driver_says)
{
	struct pointer attributes;
	char bytes[16] = "0123456789abcde";
	char back[16];
	void *pointer = NULL;

	OK(cudaMalloc(&pointer, 64 * MiB));
	OK(cudaMemcpy(pointer, bytes, sizeof(bytes), 4));
	OK(cudaMemset((char *)pointer + 1, 'x', 2));
	OK(cudaMemcpy(back, pointer, sizeof(back), 2));
	EQUAL(strcmp(back, "0xx3456789abcde"), 0);
	OK(cudaPointerGetAttributes(&attributes, pointer));
	CHECK(attributes.type == 2 && attributes.device == 0);
	OK(cudaPointerGetAttributes(&attributes, bytes));
	EQUAL(attributes.type, 0);
	OK(cudaFree(pointer));
	EQUAL(cudaMalloc(&pointer, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorMemoryAllocation"), 0);
	EQUAL(cudaMallocArray(), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(variables_of_the_program_are_memory_of_the_device)
{
	void *address;
	char back[8];

	bring_code();
	OK(cudaMemcpyToSymbol(table_host, "hello", 6, 100, 1));
	OK(cudaGetSymbolAddress(&address, table_host));
	OK(cudaMemcpy(back, (char *)address + 100, 6, 2));
	EQUAL(strcmp(back, "hello"), 0);
	EQUAL(cudaMemcpyToSymbol(table_host, "hello", 6, 4095, 1), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cudaGetSymbolAddress(&address, kernel_host), CUDA_ERROR_NOT_FOUND);
}

/* The code is loaded anew: the handles of the old context are none any more. */
TEST(a_reset_ends_the_context_and_the_next_call_begins_another)
{
	struct size one = {1, 1, 1};
	void *pointer;
	int device = 7, count;

	bring_code();
	OK(cudaGetDeviceCount(&count));
	EQUAL(count, 1);
	OK(cudaSetDevice(0));
	EQUAL(cudaSetDevice(1), CUDA_ERROR_INVALID_DEVICE);
	OK(cudaGetDevice(&device));
	EQUAL(device, 0);
	OK(cudaMalloc(&pointer, 64 * MiB));
	OK(cudaLaunchKernel(kernel_host, one, one, NULL, 0, NULL));
	OK(cudaDeviceReset());
	EQUAL(child_kind_mib(MACHINE_PLAIN), 0);
	OK(cudaLaunchKernel(kernel_host, one, one, NULL, 0, NULL));
	OK(cudaDeviceSynchronize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_of_the_program_runs_for_as_long_as_it_is_told),
		cmocka_unit_test(memory_is_where_the_driver_says),
		cmocka_unit_test(variables_of_the_program_are_memory_of_the_device),
		cmocka_unit_test(a_reset_ends_the_context_and_the_next_call_begins_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
