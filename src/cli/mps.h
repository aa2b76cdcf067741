/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control daemons of NVIDIA's Multi-Process Service, under which slices run side by side.
 *
 * An operator's daemon is used where there is one. Else this user has a daemon of its own for each set
 * of devices, in a folder beside the slices: it lives as long as a slice's share names its pipe directory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "node/place.h"
#include "policy/share.h"

struct mps {
	char pipe[SHARE_PATH_BYTES];
	char log[SHARE_PATH_BYTES]; /* "" where the daemon is an operator's */
	int lock_fd;		    /* while the slice is being made */
	bool is_used;
};

#define MPS_NULL              \
	(struct mps)          \
	{                     \
		.lock_fd = -1 \
	}

/* nvidia-cuda-mps-control in PATH, or the simulated node's. -ENOENT with err set. */
int mps_find_program(bool is_sim, char ret_path[PLACE_BYTES], struct err *err) MUST_CHECK;

/*
 * Finds a daemon for the devices, or starts one; `visible` is CUDA_VISIBLE_DEVICES, or "" for all devices.
 * It stays at least until mps_let_go(), by which time a slice's share names it.
 */
int mps_join(const char *program, const char *visible, bool is_sim, struct mps *ret_mps,
	struct err *err) MUST_CHECK;
void mps_let_go(struct mps *mps);

/* After the slice has gone: the daemon ends where it was the last. Fit for MPS_NULL. */
void mps_leave(struct mps *mps);

/*
 * Ends those of this user's daemons that no slice names. One that another vgpu is busy with is left to
 * it; only for that of the pipe directory `awaited`, which may be NULL, this waits a bounded time.
 */
void mps_sweep(const char *awaited);

/* Sets the variables that make a program its client. memory_bytes may be SHARE_UNLIMITED. */
int mps_set_environment(const struct mps *mps, const struct share_compute *compute,
	uint64_t memory_bytes, unsigned device_count, struct err *err) MUST_CHECK;
