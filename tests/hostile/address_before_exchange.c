/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own functions are taken from cuGetProcAddress at the instant after the driver has written their addresses, as a
 * second thread may do, and called from then on.
 *
 * The driver wrote to the program's memory, and the library then put its own function there. Now the driver's address
 * comes to a variable of the library's.
 *
 * The answer lies in a page that cannot be written: the signal lets the write happen, and one instruction later it is read.
 */
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/hostile/hostile.h"

#define PAGE_BYTES 4096
#define STEP_FLAG  0x100 /* of x86: a trap after the next instruction */

static void *volatile *answer; /* in a page of its own */
static void *volatile first;   /* what was there before anything else */

#ifdef __x86_64__
static void let_write(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	mprotect((void *)answer, PAGE_BYTES, PROT_READ | PROT_WRITE);
	u->uc_mcontext.gregs[REG_EFL] |= STEP_FLAG;
}

static void see(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	if (!first)
		first = *answer;
	mprotect((void *)answer, PAGE_BYTES, PROT_READ);
	u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_FLAG;
}

static void take_signals(void)
{
	struct sigaction write = {.sa_sigaction = let_write, .sa_flags = SA_SIGINFO};
	struct sigaction step = {.sa_sigaction = see, .sa_flags = SA_SIGINFO};

	MUST(sigaction(SIGSEGV, &write, NULL));
	MUST(sigaction(SIGTRAP, &step, NULL));
}
#else
static void take_signals(void)
{
}
#endif

static void ask(int form)
{
	CUdriverProcAddressQueryResult status;

	if (form == 1)
		MUST(cuGetProcAddress("cuMemAlloc", (void **)answer, 12000, 0));
	else
		MUST(cuGetProcAddress_v2("cuMemAlloc", (void **)answer, 12000, 0, &status));
}

static void run(int form)
{
	cuMemAlloc_v2_fn *allocate;
	CUdeviceptr block;

	hostile_begin();
	answer = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(answer == MAP_FAILED);
	take_signals();
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
