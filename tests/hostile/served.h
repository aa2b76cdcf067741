/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that mean harm: each tries one way to more of a device's time than its slice's cap.
 *
 *	static void attack(void)
 *	{
 *		served_begin();
 *		for (;;)
 *			...gives work, by served_launch() and the like
 *	}
 *
 *	int main(int argc, char **argv)
 *	{
 *		return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
 *	}
 *
 * The program starts itself twice, each time for some seconds, and is killed then: without the library, where it must be
 * served above the cap, or it is no way to more; and in a slice, where it must not. It prints "name: cap N %, served
 * M % (K % without the library)". What was served is the simulated device's own count, of all its processes, also of
 * those that are gone, on the virtual clock (tests/clock); without TENANT_DRIVER, on a card, it is what the kernels
 * themselves count (counted.h).
 */
#pragma once

#include <stdint.h>

#include "tests/hostile/hostile.h"

#define MS UINT64_C(1000000)

struct served {
	unsigned cap_percent;
	unsigned settle_ms;	     /* before it is judged; 0: 300, until contexts are made */
	unsigned window_ms;	     /* in which it must not be served above the cap; 0: 5 s */
	unsigned allowance_permille; /* of such a window, beyond the cap; 0: 10, a point */
	unsigned least_permille; /* less in the best window is too much charged; 0: any is right */
	bool idles_card; /* it leaves a card idle while its processes begin: there any is right */
	const char *setting;   /* NAME=VALUE of the slice's environment, or NULL */
	const char *slow_call; /* of the driver, to take 3 ms, or NULL */
	const char *terms;     /* another line of the share file, or NULL */
	bool fills_device;     /* its kernels fill the simulated device as they do a card */
	bool is_slow_on_card;  /* a card takes its time for that call: it is not skipped there */
	bool is_of_two;	       /* the machine has two devices; skipped on a card */
	bool is_other_free;    /* the same, and the second one has no cap */
	const char *(*needs)(
		void);	      /* what it needs and this machine does not have, or NULL; or NULL */
	void (*attack)(void); /* until it is killed */
};

/* The program's whole work; returns its exit status. argv is main()'s. */
int served_main(char **argv, const struct served *program);

/* Of a program that is judged only by what it costs other slices (neighbours.c), which starts it. */
int served_beside_main(void (*attack)(void));

/* Initialises the driver, makes a context of device 0 current, and loads the kernel in it. */
CUcontext served_begin(void);

/* A context more of device 0, current, with the kernel. */
CUcontext served_context(void);

/* Loads the kernel into the current context. */
CUfunction served_kernel(void);

/* A kernel that takes so long; it has to be accepted. */
void served_launch(CUfunction kernel, CUstream stream, uint64_t ns);

/* So many of them, each waited for, so that the library knows how long it takes. */
void served_make_known(CUfunction kernel, unsigned times, uint64_t ns);

/* Without end: 5 ms of copying from the host in a stream (NULL: the default one), then a kernel of 1 ms, which is known, in another, or the same; three at once. */
void served_copies_between(CUstream copies, CUstream work);

/* A graph of one kernel that takes so long. */
CUgraphExec served_graph(CUfunction kernel, uint64_t ns);

void served_sleep(uint64_t ns);

/*
 * Keeps all places busy that the library has for streams, and so many more, by short work that waits for another device: a
 * context with 120 streams, and one each for the others.
 */
void served_fill_places(unsigned more);

/* One kernel of this length after the other in a stream for which no place is left so, without end. */
void served_without_place(unsigned more, uint64_t kernel_ns);

/* Runs it in a process of its own, and when that has ended in another one, without end. */
void served_one_by_one(void (*work)(void));

/*
 * A process for each kernel of this length, one after the other, without end: it ends, or is killed, when its kernel is
 * done, and nobody in it has asked for that.
 */
void served_process_per_kernel(uint64_t kernel_ns);
