/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second thread changes the name that is looked up: it was no driver's when the library looked at it, and was one when the C
 * library did. So the program had the driver's own function, and 8 GiB in a slice of 2 GiB. Now the C library gets
 * the copy that was looked at.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/hostile.h"

#define LOOKUPS 400000

static _Atomic bool is_over;
static volatile char name[] = "cuMemAlloc_v2";

static void *change(void *unused)
{
	while (!is_over) {
		name[0] = 'x';
		name[0] = 'c';
	}
	return NULL;
}

static void attack(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *other = NULL, *known;
	CUdeviceptr block;
	pthread_t thread;

	MUST(!driver);
	hostile_begin();
	known = dlsym(driver, "cuMemAlloc_v2");
	MUST(!known);
	MUST(pthread_create(&thread, NULL, change, NULL));
	for (int i = 0; i < LOOKUPS && (!other || other == known); i++)
		other = dlsym(driver, (const char *)name);
	is_over = true;
	MUST(pthread_join(thread, NULL));
	((cuMemAlloc_v2_fn *)(other ? other : known))(&block, 8 * GIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
