/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each process makes a context of a device that has no cap, and then one of a device that has one, and gives that work at once:
 * before anybody had looked at its limits, up to 50 ms later, all of it was free.
 */
#include <sys/wait.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (10 * MS)
#define KERNELS	  100

static void run(void)
{
	CUcontext context;
	CUfunction kernel;

	MUST(cuInit(0));
	MUST(cuCtxCreate_v2(&context, 0, 1));
	MUST(cuCtxCreate_v2(&context, 0, 0));
	kernel = served_kernel();
	for (unsigned i = 0; i < KERNELS; i++)
		served_launch(kernel, NULL, KERNEL_NS);
	while (cuStreamQuery(NULL) != CUDA_SUCCESS)
		served_sleep(5 * MS);
}

static void attack(void)
{
	counted_crowd(1);
	served_one_by_one(run);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .is_other_free = true,
					 .settle_ms = 3000,
					 .attack = attack});
}
