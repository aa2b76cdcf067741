/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own malloc() has no memory while a function of the driver is looked up, so the library cannot open the driver to
 * compare. So the program had the driver's own function, and 8 GiB in a slice of 2 GiB. Now it is given none then.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/hostile/hostile.h"

static atomic_bool is_without;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	return is_without ? NULL : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
	return is_without ? NULL : __libc_calloc(count, bytes);
}

static void attack(void)
{
	CUdeviceptr block;
	void *found;

	is_without = true;
	found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	is_without = false;
	hostile_begin();
	if (found)
		((cuMemAlloc_v2_fn *)found)(&block, 8 * GIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
