/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own functions are taken from cuGetProcAddress at the instant after the driver has written their addresses, as a
 * second thread may do, and called from then on.
 *
 * The driver wrote to the program's memory, and the library then put its own function there. Now the driver's address
 * comes to a variable of the library's.
 */
#include "tests/hostile/hostile.h"
#include "tests/hostile/watched.h"

static void *answer;	     /* in a page of its own */
static void *volatile first; /* what was there before anything else */

static void see(void *page)
{
	if (!first)
		first = *(void **)page;
}

static void ask(int form)
{
	CUdriverProcAddressQueryResult status;

	if (form == 1)
		MUST(cuGetProcAddress("cuMemAlloc", answer, 12000, 0));
	else
		MUST(cuGetProcAddress_v2("cuMemAlloc", answer, 12000, 0, &status));
}

static void run(int form)
{
	cuMemAlloc_v2_fn *allocate;
	CUdeviceptr block;

	hostile_begin();
	answer = watched_page(see);
	ask(form);
	allocate = (cuMemAlloc_v2_fn *)first;
	for (int i = 0; i < 3; i++)
		allocate(&block, GIB);
	hostile_look();
}

static void run_old(int index)
{
	(void)index;
	run(1);
}

static void run_new(int index)
{
	(void)index;
	run(2);
}

static void attack(void)
{
	hostile_processes(1, run_old);
	hostile_processes(1, run_new);
}

int main(int argc, char **argv)
{
#ifndef __x86_64__
	return 77; /* skipped: the single step is written for x86 alone */
#endif
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
