/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant: an ordinary program on the CUDA driver API that takes all the device memory it gets.
 *
 * It knows nothing of slices. Run under `vgpu run` it sees a smaller device, and is refused where
 * its slice ends; run without, it fills the device. No toolkit is needed: gpu/abi/cuda.h has the
 * functions' types, and declaring a function with its type is all that a linker needs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/abi/cuda.h"

#define USED_FUNCTIONS(X)               \
	X(cuInit)                       \
	X(cuDeviceGet)                  \
	X(cuDeviceGetName)              \
	X(cuDevicePrimaryCtxRetain)     \
	X(cuDevicePrimaryCtxRelease_v2) \
	X(cuCtxSetCurrent)              \
	X(cuMemGetInfo_v2)              \
	X(cuMemAlloc_v2)                \
	X(cuMemFree_v2)                 \
	X(cuMemcpyDtoH_v2)              \
	X(cuModuleLoadData)             \
	X(cuModuleGetFunction)          \
	X(cuModuleUnload)               \
	X(cuStreamCreate)               \
	X(cuStreamDestroy_v2)           \
	X(cuEventCreate)                \
	X(cuEventRecord)                \
	X(cuEventSynchronize)           \
	X(cuEventElapsedTime)           \
	X(cuEventDestroy_v2)            \
	X(cuLaunchKernel)               \
	X(cuGetErrorName)
#define X(symbol) symbol##_fn symbol;
USED_FUNCTIONS(X)
#undef X

#define BLOCK_BYTES (256ull << 20)
#define BLOCKS_MAX  4096
#define LAUNCHES    20
#define LAUNCH_NS   2000000ull /* 2 ms */
#define WRITTEN	    42u

/* Turns until duration_ns have passed on the device's clock, then writes a number. */
/* clang-format off */
static const char kernel_text[] =
	".version 7.0\n"
	".target sm_52\n"
	".address_size 64\n"
	".visible .entry spin(\n"
	"	.param .u64 duration_ns,\n"
	"	.param .u64 written)\n"
	"{\n"
	"	.reg .pred %again;\n"
	"	.reg .b32 %number;\n"
	"	.reg .b64 %duration, %start, %now, %passed, %to;\n"
	"	ld.param.u64 %duration, [duration_ns];\n"
	"	ld.param.u64 %to, [written];\n"
	"	cvta.to.global.u64 %to, %to;\n"
	"	mov.u64 %start, %globaltimer;\n"
	"turn:\n"
	"	mov.u64 %now, %globaltimer;\n"
	"	sub.u64 %passed, %now, %start;\n"
	"	setp.lt.u64 %again, %passed, %duration;\n"
	"	@%again bra turn;\n"
	"	mov.u32 %number, 42;\n"
	"	st.global.u32 [%to], %number;\n"
	"	ret;\n"
	"}\n";
/* clang-format on */

struct blocks {
	CUdeviceptr block[BLOCKS_MAX];
	unsigned count;
};

static const char *name_of(CUresult result)
{
	const char *name = NULL;

	return cuGetErrorName(result, &name) == CUDA_SUCCESS && name ? name : "an unknown error";
}

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("  %s: %s\n", what, name_of(result));
	exit(1);
}

static double gib(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

/* Takes blocks until there are `most`, or one is refused; returns the refusal's code. */
static CUresult take(struct blocks *blocks, unsigned most)
{
	while (blocks->count < most) {
		CUresult r = cuMemAlloc_v2(&blocks->block[blocks->count], BLOCK_BYTES);

		if (r != CUDA_SUCCESS)
			return r;
		blocks->count++;
	}
	return CUDA_SUCCESS;
}

static void give_back(struct blocks *blocks, unsigned left)
{
	while (blocks->count > left)
		must(cuMemFree_v2(blocks->block[--blocks->count]), "cuMemFree");
}

static void use_memory(struct blocks *blocks, unsigned most)
{
	CUresult refusal = take(blocks, most);
	unsigned first = blocks->count;

	printf("  took %u x 256 MiB = %.2f GiB%s%s\n", first, gib(first * BLOCK_BYTES),
		refusal ? "; the next: " : "", refusal ? name_of(refusal) : "");
	give_back(blocks, first / 2);
	refusal = take(blocks, most);
	printf("  gave back %u, took %u again%s%s\n", first - first / 2, blocks->count - first / 2,
		refusal ? "; the next: " : "", refusal ? name_of(refusal) : "");
}

static void launch(CUstream stream, CUfunction spin, CUdeviceptr written)
{
	uint64_t duration_ns = LAUNCH_NS;
	void *parameters[] = {&duration_ns, &written};

	must(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL),
		"cuLaunchKernel");
}

/* Launches the kernel in a stream and measures by events. `written` is a block of ours. */
static void use_processor(CUdeviceptr written)
{
	CUevent start, end;
	CUfunction spin;
	CUmodule module;
	CUstream stream;
	uint32_t number = 0;
	float ms;

	must(cuModuleLoadData(&module, kernel_text), "cuModuleLoadData");
	must(cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
	must(cuStreamCreate(&stream, 1), "cuStreamCreate"); /* 1: apart from the default stream */
	must(cuEventCreate(&start, 0), "cuEventCreate");
	must(cuEventCreate(&end, 0), "cuEventCreate");
	must(cuEventRecord(start, stream), "cuEventRecord");
	for (int i = 0; i < LAUNCHES; i++)
		launch(stream, spin, written);
	must(cuEventRecord(end, stream), "cuEventRecord");
	must(cuEventSynchronize(end), "cuEventSynchronize");
	must(cuEventElapsedTime(&ms, start, end), "cuEventElapsedTime");
	must(cuMemcpyDtoH_v2(&number, written, sizeof(number)), "cuMemcpyDtoH");
	printf("  %d kernels of %llu ms: %.1f ms%s\n", LAUNCHES, LAUNCH_NS / 1000000, (double)ms,
		number == WRITTEN ? ", result as expected" : "");
	must(cuEventDestroy_v2(start), "cuEventDestroy");
	must(cuEventDestroy_v2(end), "cuEventDestroy");
	must(cuStreamDestroy_v2(stream), "cuStreamDestroy");
	must(cuModuleUnload(module), "cuModuleUnload");
}

static void hold(unsigned long ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

	printf("  holding what it has for %lu ms\n", ms);
	fflush(stdout);
	nanosleep(&t, NULL);
}

struct request {
	unsigned long hold_ms, blocks;
};

static int read_request(int argc, char **argv, struct request *ret_request)
{
	struct request r = {.blocks = BLOCKS_MAX};

	for (int i = 1; i < argc; i += 2) {
		unsigned long *to = NULL;
		char *end = argv[i];

		if (!strcmp(argv[i], "--hold"))
			to = &r.hold_ms;
		else if (!strcmp(argv[i], "--blocks"))
			to = &r.blocks;
		if (to && i + 1 < argc)
			*to = strtoul(argv[i + 1], &end, 10);
		if (!to || i + 1 == argc || *end || end == argv[i + 1] || r.blocks > BLOCKS_MAX) {
			fprintf(stderr, "tenant [--blocks N, at most %d] [--hold MS]\n",
				BLOCKS_MAX);
			return -1;
		}
	}
	*ret_request = r;
	return 0;
}

int main(int argc, char **argv)
{
	static struct blocks blocks;
	struct request request;
	size_t free_bytes, total_bytes;
	char name[96];
	CUdevice device;
	CUcontext context;

	if (read_request(argc, argv, &request) < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDeviceGetName(name, sizeof(name), device), "cuDeviceGetName");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
	printf("%s, %.2f GiB, of them free: %.2f GiB\n", name, gib(total_bytes), gib(free_bytes));
	use_memory(&blocks, (unsigned)request.blocks);
	if (blocks.count > 0)
		use_processor(blocks.block[0]);
	if (request.hold_ms)
		hold(request.hold_ms);
	give_back(&blocks, 0);
	must(cuDevicePrimaryCtxRelease_v2(device), "cuDevicePrimaryCtxRelease");
	return 0;
}
