/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym() itself is looked up with a handle of the C library, and dlvsym() by that. So the program had the driver's own
 * functions, and 8 GiB in a slice of 2 GiB. Now the library gives its own.
 */
#include <dlfcn.h>

#include "tests/hostile/hostile.h"

typedef void *lookup_fn(void *handle, const char *name);
typedef void *lookup_version_fn(void *handle, const char *name, const char *version);

static void attack(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);
	void *known, *others[3] = {NULL};
	lookup_version_fn *by_version;
	lookup_fn *by_handle;
	CUdeviceptr block;

	MUST(!driver || !libc);
	hostile_begin();
	known = dlsym(driver, "cuMemAlloc_v2");
	by_handle = (lookup_fn *)dlsym(libc, "dlsym");
	by_version = (lookup_version_fn *)dlsym(libc, "dlvsym");
	/* before glibc 2.34 they are libdl's */
	if (by_handle) {
		others[0] = by_handle(driver, "cuMemAlloc_v2");
		by_handle = (lookup_fn *)by_handle(libc, "dlsym");
		others[1] = by_handle(driver, "cuMemAlloc_v2");
	}
	if (by_version) {
		by_handle = (lookup_fn *)by_version(libc, "dlsym", "GLIBC_2.2.5");
		others[2] = by_handle ? by_handle(driver, "cuMemAlloc_v2") : NULL;
	}
	for (int i = 0; i < 3; i++)
		if (others[i] && others[i] != known)
			known = others[i];
	((cuMemAlloc_v2_fn *)known)(&block, 8 * GIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
