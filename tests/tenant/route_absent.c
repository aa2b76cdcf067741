/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program finds of a driver that lacks a function: nothing, whatever the door. Prints what
 * was wrong; run with old_driver.c's libcuda.so.1. The program is not linked with the driver.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "gpu/abi/cuda.h"

#define VERSION "DRIVER_9.0" /* of old/driver.map */

static int faults;

static void expect_absent(void *library, const char *how, const char *symbol)
{
	dlerror();
	if (dlsym(library, symbol)) {
		printf("%s is found by %s\n", symbol, how);
		faults++;
	} else if (!dlerror()) {
		printf("%s is not found by %s, and dlerror is silent\n", symbol, how);
		faults++;
	}
}

int main(void)
{
	static const char *const lacking[] = {"cuMemCreate", "cuMemAllocAsync",
		"cuGetProcAddress_v2", "cuMemAllocAsync_ptsz", "cuDeviceGetUuid_v2",
		"cuMulticastBindMem_v2", "cuNoSuchFunction"};
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	cuMemAlloc_v2_fn *alloc;
	CUdeviceptr block;

	if (!library)
		return 1;
	for (unsigned i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
		expect_absent(library, "handle", lacking[i]);
		expect_absent(RTLD_DEFAULT, "RTLD_DEFAULT", lacking[i]);
		if (dlvsym(library, lacking[i], VERSION) ||
			dlvsym(RTLD_DEFAULT, lacking[i], VERSION)) {
			printf("%s is found by dlvsym\n", lacking[i]);
			faults++;
		}
	}
	alloc = (cuMemAlloc_v2_fn *)dlsym(library, "cuMemAlloc_v2");
	if (!alloc || alloc(&block, 4096) != CUDA_SUCCESS) {
		printf("cuMemAlloc_v2 does not work\n");
		faults++;
	}
	if (dlvsym(library, "cuMemAlloc_v2", VERSION) != (void *)alloc ||
		dlvsym(library, "cuMemAlloc_v2", "DRIVER_1.0")) {
		printf("dlvsym does not agree with dlsym\n");
		faults++;
	}
	return faults ? 2 : 0;
}
