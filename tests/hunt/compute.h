/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs that give a device work, in one slice: contexts, streams, events, graphs, processes and their ends.
 *
 * A program is a list of steps, which its first process does again and again until it is killed; as text,
 * "cap 30 peer 60; stream 1 0; launch 1 2000 4; 1/launch 4 500 1". "1/" are steps of another part, which processes and
 * threads do. Any part of a program's steps is a program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPUTE_STEPS	 48
#define COMPUTE_PARTS	 3
#define COMPUTE_CONTEXTS 3
#define COMPUTE_STREAMS	 6 /* the last two are the default stream and the thread's own */
#define COMPUTE_EVENTS	 3
#define COMPUTE_GRAPHS	 2
#define COMPUTE_TEXT	 2048

/* What a process of a program is told through its environment. */
#define COMPUTE_PROGRAM "HUNT_COMPUTE_PROGRAM" /* as text */
#define COMPUTE_PART	"HUNT_COMPUTE_PART"    /* its part, or "peer" */
#define COMPUTE_TIMES	"HUNT_COMPUTE_TIMES"   /* how often it does that */

enum compute_op {
#define STEP(name, arguments, weight, habit, body) COMPUTE_##name,
#include "tests/hunt/compute.def"
#undef STEP
	COMPUTE_OPS
};

struct compute_step {
	enum compute_op op;
	uint32_t part;
	uint32_t context, stream, event, graph, other_part, us, times;
};

struct compute_program {
	uint32_t cap_percent,
		peer_percent; /* of a second slice that always has work; 0: there is none */
	uint32_t count;
	struct compute_step steps[COMPUTE_STEPS];
};

/* A row of compute.def. */
struct compute_kind {
	const char *name, *arguments;
	uint32_t weight;
	bool is_harmless;
};
extern const struct compute_kind compute_kinds[COMPUTE_OPS];

void compute_print(const struct compute_program *p, char ret_text[COMPUTE_TEXT]);
/* False where the text is no program. */
bool compute_parse(const char *text, struct compute_program *ret_program);

/* The same program for the same seed, everywhere. */
void compute_make(uint64_t seed, struct compute_program *ret_program);

/* Does a part of the program, in a process of its own: part 0 without an end, another so many times. */
void compute_play(const struct compute_program *p, uint32_t part, uint32_t times);
/* Always has work of one kind. */
void compute_play_peer(void);

/* What a slice was served and charged in a window, by the simulated device and its own region. */
struct compute_figures {
	uint64_t window_ns, served_ns, charged_ns, peer_served_ns;
	bool is_alive; /* the program was still there */
	bool is_told;  /* else it took too long to be judged */
};

/* Runs the program so long, in a slice or without the library. */
struct compute_figures compute_run(
	const struct compute_program *p, bool is_in_slice, uint64_t window_ns);

/* What is wrong with the program's figures in a slice, in so many words; NULL: nothing. */
const char *compute_judge(const struct compute_program *p, bool is_loud);
