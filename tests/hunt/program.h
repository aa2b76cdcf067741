/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of a few threads, as text that a person can read, cut and run again:
 *
 *	hunt honest quota 2048 threads 2
 *	0 0 take plain 4711			number 0, in thread 0: takes by a family of tests/tenant/load
 *	1 1 give 0 17 pause 3			thread 1 gives back what number 0 took
 *
 * The last number is the seed of what the step chooses itself, so that it does the same whatever stands before it.
 * "pause N": at its N-th step the thread comes behind all others, and goes on when they can not. "refuse N": the
 * driver refuses the N-th call in it; "memory N": our own memory runs out at the N-th request in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_STEPS	 96
#define PROGRAM_THREADS	 4
#define ROUNDS_QUOTA_MIB 8192 /* of the slice in which rounds of one family are done */
#define PROGRAM_TEXT	 (PROGRAM_STEPS * 96 + 128)

enum program_mode {
	PROGRAM_HONEST, /* each call succeeds or finds no memory, and all is given back in the end */
	PROGRAM_HOSTILE, /* what is in use is given back, too, and some of it twice */
	PROGRAM_FAILING, /* the driver refuses calls, and our own memory runs out */
	PROGRAM_MODES,
};

enum program_verb { PROGRAM_TAKE, PROGRAM_GIVE, PROGRAM_GIVE_TWICE, PROGRAM_USE, PROGRAM_VERBS };

struct program_step {
	unsigned number, thread;
	enum program_verb verb;
	unsigned family; /* of a take */
	unsigned object; /* of the others: the number of the step that took it */
	uint64_t seed;
	unsigned pause, refuse, memory; /* 0: never */
};

struct program {
	enum program_mode mode;
	uint64_t quota_mib;
	unsigned threads, count;
	struct program_step step[PROGRAM_STEPS];
};

const char *program_mode_text(enum program_mode mode);

/* The program of a seed. */
void program_make(struct program *ret_program, enum program_mode mode, uint64_t seed);

/* As text, and back: false where it is none. */
void program_print(const struct program *program, char text[PROGRAM_TEXT]);
bool program_parse(const char *text, struct program *ret_program);
