/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of its own for a test, and processes that hold memory of it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* A fresh folder below $TMPDIR with $VGPU_SIM_STATE in it; the board is `board`. */
void scratch_begin(const char *board);
/* Removes it and what is in it. */
void scratch_end(void);
/* The path of a file in the folder; the buffer is static. */
const char *scratch_path(const char *name);

/* A child process that holds memory of the machine until holder_end(). */
struct holder {
	pid_t pid;
	int end_fd; /* a byte written to it ends the child */
};

/*
 * Starts a child under `tag` with `context_count` contexts of context_bytes and `plain_bytes` more
 * on device `device`; returns when it holds them.
 */
struct holder holder_start(
	const char *tag, int device, unsigned int context_count, uint64_t plain_bytes);
void holder_end(struct holder *holder);

/* Those started from now on have work for so long, beside half a second of it that is done. */
void scratch_set_work(uint64_t ahead_ns);

/* The same in a PID namespace of its own. pid is 0 where that is not allowed. */
struct holder holder_start_contained(const char *tag, int device, uint64_t plain_bytes);
