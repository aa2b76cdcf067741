/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many processes whose kernels are known as short: one after the other gives one that takes long,
 * lives on and makes no more calls. Included once.
 */
#pragma once

#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/hostile/served.h"

#define PROCESSES 24
#define KERNEL_NS (500 * MS)
#define KNOWN	  40 /* pieces, after which the kernel's time is known */
#define SHORT_NS  20000

/* In which the long one is; and what each process does before its turn. */
#ifndef SILENT_STREAM
#define SILENT_STREAM  NULL
#define SILENT_READY() ((void)0)
#endif

static _Atomic unsigned *turn;

/* Of the program: from here on it makes no call of the driver's. */
static void be_silent(void);

static void give(int index)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	SILENT_READY();
	while (*turn != (unsigned)index)
		served_sleep(MS);
	/* The one before is under way. */
	if (index > 0)
		served_sleep(KERNEL_NS);
	served_launch(kernel, SILENT_STREAM, SHORT_NS);
	served_launch(kernel, SILENT_STREAM, KERNEL_NS);
	*turn = (unsigned)index + 1;
	be_silent();
}

static void attack(void)
{
	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(turn == MAP_FAILED);
	hostile_processes(PROCESSES, give);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30,
			      .settle_ms = 2000,
			      .allowance_permille = 100, /* a window has a whole kernel */
			      .attack = attack});
}
