/* SPDX-License-Identifier: Apache-2.0 */
/* Who does a program of compute work: a process of it, or a thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/hostile/served.h"
#include "tests/hunt/compute.h"

#define AT_ONCE 4 /* processes, and threads, of a program */

struct place {
	CUcontext context; /* NULL: there is none */
	CUgreenCtx green;
	bool is_primary;
	CUfunction function[2];
	CUdeviceptr buffer;
};

struct player {
	const struct compute_program *program;
	uint32_t part, times;
	bool is_first; /* of the program's processes */
	uint32_t ctx;  /* the current one */
	struct place places[COMPUTE_CONTEXTS];
	struct {
		CUstream handle; /* NULL: there is none */
		uint32_t context;
	} streams[COMPUTE_STREAMS];
	CUevent events[COMPUTE_EVENTS];
	struct {
		CUgraphExec exec; /* NULL: there is none */
		CUgraphNode first;
		uint32_t context;
	} graphs[COMPUTE_GRAPHS];
	pid_t processes[AT_ONCE];
	pthread_t threads[AT_ONCE];
	bool is_thread[AT_ONCE];
	uint64_t given_ns, since_ns; /* work given to the driver, since then */
	uint32_t still_rounds;
};

/* Does the player's part, so many times as it is to. */
void player_play(struct player *p);

/* Steps of it. */
void player_launch(struct player *p, const struct compute_step *step);
void player_stop(struct player *p, const struct compute_step *step);
void player_fork(struct player *p, const struct compute_step *step);
void player_begin_process(struct player *p, const struct compute_step *step);
void player_begin_thread(struct player *p, const struct compute_step *step);
void player_reap(struct player *p, const struct compute_step *step);
void player_end_process(struct player *p, const struct compute_step *step);
