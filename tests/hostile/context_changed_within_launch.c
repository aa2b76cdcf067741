/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read. While the driver reads them, the program's handler waits for
 * the default stream, and makes another context current, where it waits for other work. The launch goes on in the first context:
 * its stream, which has no handle of its own, is another one by then for who looks it up.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)
#define PAGE	  4096

static CUcontext second;
static CUdeviceptr block;
static void *page;

static void handle(int number)
{
	MUST(cuStreamSynchronize(NULL));
	/* The library may refuse it. */
	if (cuCtxSetCurrent(second) == CUDA_SUCCESS) {
		MUST(cuMemsetD8Async(block, 0, 64, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
	MUST(mprotect(page, PAGE, PROT_READ | PROT_WRITE));
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	CUfunction kernel;
	CUcontext first;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page == MAP_FAILED);
	first = served_begin();
	kernel = served_kernel();
	MUST(cuCtxCreate_v2(&second, 0, 0));
	MUST(cuMemAlloc_v2(&block, PAGE));
	MUST(cuCtxSetCurrent(first));
	MUST(sigaction(SIGSEGV, &action, NULL));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		MUST(cuCtxSetCurrent(first));
		node = counted_node(kernel, KERNEL_NS);
		memcpy(page, node.kernelParams, 2 * sizeof(void *));
		MUST(mprotect(page, PAGE, PROT_NONE));
		MUST(cuLaunchKernel(
			kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, NULL, page, NULL));
		MUST(cuCtxSetCurrent(second));
		MUST(cuStreamSynchronize(NULL));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
