/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with pointers that are called as the driver's functions are: one that it has from a library (pointers.c), and one of
 * its own that it exports. With a function of its own of such a name, which it exports, too. Prints what is wrong, or "ok".
 */
#include <dlfcn.h>
#include <stdio.h>

#include "gpu/abi/cuda.h"
#include "tests/tenant/own_names.h"

#define OWN_ANSWER 4711

extern cuInit_fn *cuInit;
EXPORT cuMemFree_v2_fn *cuMemFree_v2;
cuMemGetInfo_v2_fn cuMemGetInfo_v2;

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	return (CUresult)OWN_ANSWER;
}

static int check(void)
{
	void *self = dlopen(NULL, RTLD_NOW);

	if (dlsym(RTLD_DEFAULT, "cuMemFree_v2") != (void *)&cuMemFree_v2 ||
		dlsym(self, "cuMemFree_v2") != (void *)&cuMemFree_v2)
		return puts("its pointer is not found") < 0;
	if (dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2") != (void *)cuMemGetInfo_v2 ||
		dlsym(self, "cuMemGetInfo_v2") != (void *)cuMemGetInfo_v2 ||
		cuMemGetInfo_v2(NULL, NULL) != (CUresult)OWN_ANSWER)
		return puts("its function is not found") < 0;
	return 1;
}

int main(void)
{
	void *driver;
	int blocks;

	if (cuInit || cuMemFree_v2)
		return puts("a pointer is not empty") < 0;
	if (dlsym(RTLD_DEFAULT, "cuInit") != (void *)&cuInit)
		return puts("the library's pointer is not found") < 0;
	if (!check())
		return 1;
	blocks = own_fill();
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || !cuInit || (void *)cuInit != dlsym(driver, "cuInit") || cuInit(0))
		return puts("the library has not filled its pointer") < 0;
	cuMemFree_v2 = (cuMemFree_v2_fn *)dlsym(driver, "cuMemFree_v2");
	if (!check())
		return 1;
	printf("ok %d\n", blocks);
	return 0;
}
