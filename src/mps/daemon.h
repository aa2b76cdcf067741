/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One control daemon of the Multi-Process Service: whether it lives, its beginning and its end.
 *
 * A run of the control program takes from 0.06 s to many: it is begun, and asked about. What waits for it is beside that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "node/place.h"
#include "policy/share.h"

/* Where a daemon's files are, in folders that are there. */
struct mps_place {
	char pipe[SHARE_PATH_BYTES];
	char log[SHARE_PATH_BYTES];
	char memory
		[SHARE_PATH_BYTES]; /* is /dev/shm for it and its clients; "": that which is there */
};

/* A run of the control program that is under way. */
struct mps_run {
	pid_t pid; /* 0: it is over */
	uint64_t deadline_ns;
	int result; /* of the program */
	bool is_start;
};

/* nvidia-cuda-mps-control in PATH. -ENOENT with err set. */
int mps_daemon_find(char ret_path[PLACE_BYTES], struct err *err) MUST_CHECK;

/* Whether a daemon listens in this pipe directory. Nothing is said to it. */
bool mps_daemon_is_alive(const char *pipe);

/* Begins to start it for the devices, or all where `visible` is "". -errno. */
int mps_daemon_begin_start(const struct mps_place *place, const char *program, const char *visible,
	struct mps_run *ret_run) MUST_CHECK;

/* Begins to end it. It may have no client any more. -errno. */
int mps_daemon_begin_stop(
	const struct mps_place *place, const char *program, struct mps_run *ret_run) MUST_CHECK;

/*
 * How it has gone: -EAGAIN: it is not over. 0: the daemon listens, or has ended. -ETIMEDOUT, -EIO, with err set for a
 * start.
 */
int mps_daemon_poll(const struct mps_place *place, struct mps_run *run, struct err *err) MUST_CHECK;

/* The same, waiting. */
int mps_daemon_start(const struct mps_place *place, const char *program, const char *visible,
	struct err *err) MUST_CHECK;
int mps_daemon_stop(const struct mps_place *place, const char *program) MUST_CHECK;
