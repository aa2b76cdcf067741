/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel of programs that want more of a device's time, and what it counts of itself on a card.
 *
 * The kernel turns through a loop for as long as its parameter says, so it also takes as long where the device leaves it
 * for a while. It fills the card: no two of them run at once, and none is counted beside another. After every 20 us of
 * work it adds them to a word of memory that the judge has made, so what a killed process had of the device is counted.
 * The simulated node runs no code: it reads the parameter, and counts itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/hostile/hostile.h"

/* Of the judge and all processes of its program. */
struct counted {
	_Atomic uint64_t served_ns;  /* the first word: the kernels add to it */
	_Atomic uint64_t rate;	     /* turns through the loop in 65,536 ns; 0: not measured yet */
	_Atomic uint64_t longest_ns; /* of what was given at once */
	_Atomic uint64_t elsewhere_ns; /* the kernels of other devices than the first add to it */
	_Atomic bool is_being_measured;
	_Atomic unsigned crowd; /* so many processes come and go at once; 0: not so */
};

/* Whether the device is a card, and not simulated. */
bool counted_is_on_card(void);

/* Of the judge, before it starts a program. */
struct counted *counted_make(void);

/* Loads the kernel into the current context. On a card the first one of all measures its speed, alone on the device. */
CUfunction counted_kernel(void);

/* Lets the kernel fill so many multiprocessors only, as it runs in a part of the card. */
void counted_fill(unsigned multiprocessors);

/* The kernel for so long as a node of a graph, or for a launch; valid until the next call. */
CUDA_KERNEL_NODE_PARAMS_v2 counted_node(CUfunction kernel, uint64_t ns);

/* So much is given at once, without further calls. */
void counted_note(uint64_t ns);

/* On a card a process takes long to begin: so many go on from here, each doing the same. Once in a program. */
void counted_crowd(unsigned count);
