/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread at a time. The threads of a program hand a baton on at yield points: the places of base/fault.h, the
 * beginning and end of each call of the driver, and where a thread would sleep to wait for another. The first in an
 * order that can go on has it. A thread that was told to pause comes behind all others, which is what a priority
 * that changes does, and few such changes reach most races.
 */
#pragma once

#include <stdbool.h>

#define BATON_THREADS 8

/* What is called at each yield point, before the baton is handed on; by the thread that has it. */
typedef void baton_watch_fn(const char *place);

/* Before the threads start: so many will come. */
void baton_begin(unsigned threads, baton_watch_fn *watch);

/* A thread's first call, with its number: returns when it is its turn. And its last. */
void baton_join(unsigned thread);
void baton_leave(void);

/* At the N-th yield point from here on the calling thread comes behind all others; 0: not. */
void baton_pause_at(unsigned n);

/* A yield point. Nothing in a thread that is not one of the program's. */
void baton_yield(const char *place);

/* How many yield points were passed. */
unsigned long baton_yields(void);
