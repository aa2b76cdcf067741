/* SPDX-License-Identifier: Apache-2.0 */
/* One control daemon of the Multi-Process Service: whether it lives, its beginning and its end. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "policy/share.h"

/* Where a daemon's files are. */
struct mps_place {
	char pipe[SHARE_PATH_BYTES];
	char log[SHARE_PATH_BYTES];
};

/* Whether a daemon listens in this pipe directory. Nothing is said to it. */
bool mps_daemon_is_alive(const char *pipe);

/* Starts it for the devices, or all where `visible` is "", and waits until it listens. */
int mps_daemon_start(const struct mps_place *place, const char *program, const char *visible,
	struct err *err) MUST_CHECK;

/* Tells it to end, and waits for that. It may have no client any more. */
int mps_daemon_stop(const struct mps_place *place, const char *program) MUST_CHECK;
