/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of programs that want more of a device's time, and what it counts of itself on a card. */
#include "tests/hostile/counted.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"

#define COUNTED_FD   102 /* in each process of the program: the memory of struct counted */
#define COUNTED_SIZE 4096
#define TEXT_SIZE    2048

/* About what a card does, so that the speed is measured in some tenths of a second. */
#define RATE_GUESS  8192
#define MEASURE_NS  UINT64_C(40000000)
#define MEASURES    20
#define MEASURED_NS UINT64_C(10000000000) /* by another process, at the latest */

/* Addresses that are the same in each process, so that the driver finds the kernel compiled. */
#define MAPPED_AT UINT64_C(0x200000000000)
#define CROWD	  8
#define IN_CROWD  "HOSTILE_IN_CROWD"

/*
 * One thread of the first block counts. The first 32 threads of each block work, and the others wait for them: they are
 * there to leave no room on the multiprocessor.
 */
static const char kernel_text[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry busy(\n\t.param .u64 duration_ns\n)\n{\n"
	"\t.reg .pred %%p<6>;\n\t.reg .b32 %%r<4>;\n\t.reg .b64 %%rd<6>;\n"
	"\tmov.u32 %%r1, %%tid.x;\n"
	"\tsetp.gt.u32 %%p1, %%r1, 31;\n"
	"\t@%%p1 bra DONE;\n"
	"\tmov.u32 %%r2, %%ctaid.x;\n"
	"\tor.b32 %%r2, %%r2, %%r1;\n"
	"\tsetp.eq.u32 %%p2, %%r2, 0;\n"
	"\tld.param.u64 %%rd1, [duration_ns];\n"
	"\tmov.u64 %%rd2, %llu;\n"
	"\tmov.u32 %%r3, 1;\n"
	"STEP:\n"
	"\tsetp.eq.u64 %%p3, %%rd1, 0;\n"
	"\t@%%p3 bra WORKED;\n"
	"\tmin.u64 %%rd3, %%rd1, 20000;\n"
	"\tsub.u64 %%rd1, %%rd1, %%rd3;\n"
	"\tmul.lo.u64 %%rd4, %%rd3, %llu;\n"
	"\tshr.u64 %%rd4, %%rd4, 16;\n"
	"\tadd.u64 %%rd4, %%rd4, 1;\n"
	"TURN:\n"
	"\tmad.lo.u32 %%r3, %%r3, 1664525, 1013904223;\n"
	"\tsub.u64 %%rd4, %%rd4, 1;\n"
	"\tsetp.ne.u64 %%p4, %%rd4, 0;\n"
	"\t@%%p4 bra TURN;\n"
	"\t@%%p2 red.relaxed.sys.global.add.u64 [%%rd2], %%rd3;\n"
	"\tbra STEP;\n"
	"WORKED:\n" /* nothing is added; keeps the loop */
	"\tsetp.eq.u32 %%p5, %%r3, 0;\n"
	"\tcvt.u64.u32 %%rd5, %%r3;\n"
	"\t@%%p5 red.relaxed.sys.global.add.u64 [%%rd2], %%rd5;\n"
	"DONE:\n"
	"\tbar.sync 0;\n"
	"\tret;\n"
	"}\n";

static struct counted *counted;
static unsigned multiprocessors; /* 0: all */

bool counted_is_on_card(void)
{
	return !getenv("TENANT_DRIVER");
}

static void *map(uint64_t at)
{
	/* An address that is taken already is no address for it: the kernel finds another. */
	void *page = mmap((void *)(uintptr_t)at, COUNTED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		COUNTED_FD, 0);

	MUST(page == MAP_FAILED);
	return page;
}

struct counted *counted_make(void)
{
	int fd = memfd_create("counted", 0);

	MUST(fd < 0 || ftruncate(fd, COUNTED_SIZE) || dup2(fd, COUNTED_FD) < 0);
	close(fd);
	counted = map(0);
	return counted;
}

/* A mapping for each context: what is registered goes with its context, and no memory is registered twice. */
static CUdeviceptr map_for_device(void)
{
	static unsigned count;
	void *page = map(MAPPED_AT + count++ * COUNTED_SIZE);
	CUdeviceptr at;

	MUST(cuMemHostRegister_v2(page, COUNTED_SIZE, CU_MEMHOSTREGISTER_DEVICEMAP));
	MUST(cuMemHostGetDevicePointer_v2(&at, page, 0));
	return at;
}

static CUmodule load(CUdeviceptr at, uint64_t rate, CUfunction *ret_kernel)
{
	char text[TEXT_SIZE];
	CUmodule module;
	int length = snprintf(
		text, sizeof(text), kernel_text, (unsigned long long)at, (unsigned long long)rate);

	MUST(length < 0 || length >= TEXT_SIZE);
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(ret_kernel, module, "busy"));
	return module;
}

static void launch(CUfunction kernel, uint64_t ns)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node = counted_node(kernel, ns);

	MUST(cuLaunchKernel(kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, NULL,
		node.kernelParams, NULL));
	MUST(cuCtxSynchronize());
}

/* Until it took as long twice: at first the card's clock still rises. */
static uint64_t measure(CUfunction kernel)
{
	uint64_t taken_ns = 0, before_ns, last_ns;

	launch(kernel, 0);
	for (unsigned i = 0; i < MEASURES; i++) {
		last_ns = taken_ns;
		before_ns = clock_now_ns();
		launch(kernel, MEASURE_NS);
		taken_ns = clock_now_ns() - before_ns;
		if (taken_ns + taken_ns / 256 > last_ns && last_ns + taken_ns / 256 > taken_ns)
			break;
	}
	return RATE_GUESS * MEASURE_NS / taken_ns;
}

static void measure_once(CUdeviceptr at)
{
	uint64_t until_ns = clock_now_ns() + MEASURED_NS, rate;
	CUfunction kernel;
	CUmodule module;

	while (!atomic_load(&counted->rate)) {
		if (atomic_exchange(&counted->is_being_measured, true)) {
			MUST(clock_now_ns() > until_ns);
			usleep(1000);
			continue;
		}
		module = load(at, RATE_GUESS, &kernel);
		rate = measure(kernel);
		MUST(cuModuleUnload(module));
		atomic_store(&counted->longest_ns, 0);
		atomic_store(&counted->served_ns, 0);
		atomic_store(&counted->rate, rate);
	}
}

CUfunction counted_kernel(void)
{
	CUfunction kernel;
	CUdevice device;
	CUdeviceptr at;

	if (!counted_is_on_card()) {
		load(0, 1, &kernel);
		return kernel;
	}
	if (!counted)
		counted = map(0);
	at = map_for_device();
	measure_once(at);
	MUST(cuCtxGetDevice(&device));
	load(device == 0 ? at : at + offsetof(struct counted, elsewhere_ns),
		atomic_load(&counted->rate), &kernel);
	return kernel;
}

void counted_fill(unsigned count)
{
	multiprocessors = count;
}

/* Two blocks have all threads of a multiprocessor, so no other's has room beside them. */
static void fill(CUDA_KERNEL_NODE_PARAMS_v2 *node)
{
	static int all, threads;

	if (!all) {
		MUST(cuDeviceGetAttribute(
			&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
		MUST(cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	}
	node->gridDimX = 2 * (multiprocessors ? multiprocessors : (unsigned)all);
	node->blockDimX = (unsigned)threads / 2;
}

CUDA_KERNEL_NODE_PARAMS_v2 counted_node(CUfunction kernel, uint64_t ns)
{
	static __thread uint64_t duration_ns;
	static __thread void *parameters[1];
	CUDA_KERNEL_NODE_PARAMS_v2 node = hostile_node(kernel, NULL);

	duration_ns = ns;
	parameters[0] = &duration_ns;
	node.kernelParams = parameters;
	if (!counted_is_on_card())
		return node;
	fill(&node);
	counted_note(ns);
	return node;
}

void counted_note(uint64_t ns)
{
	uint64_t longest_ns;

	if (!counted)
		return;
	longest_ns = atomic_load(&counted->longest_ns);
	while (ns > longest_ns &&
		!atomic_compare_exchange_weak(&counted->longest_ns, &longest_ns, ns))
		;
}

void counted_crowd(unsigned count)
{
	if (!counted_is_on_card() || getenv(IN_CROWD))
		return;
	MUST(setenv(IN_CROWD, "1", 1));
	counted = map(0);
	atomic_store(&counted->crowd, count);
	for (unsigned i = 1; i < count; i++)
		if (fork() == 0)
			break;
}
