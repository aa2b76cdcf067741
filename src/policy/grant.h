/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may have, by all that speaks of it: the system's share file, the one of VGPU_SHARE, and the
 * environment.
 *
 * Of each limit the least is in force. The tenant library goes by it, and `vgpu doctor` says it of another process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/options.h"
#include "policy/share.h"

#define GRANT_SHARES 2 /* the system's first */
#define GRANT_MPS_PIPE \
	"/tmp/nvidia-mps" /* of the driver's MPS daemon, where the environment names no other */

/*
 * What the environment says of the device with this index of NVML's, or, below 0, of one whose index is unknown:
 * SHARE_UNLIMITED and all zero where it says nothing. The policy "default" lends what nobody else uses, which is
 * unknown without time slices.
 */
uint64_t grant_environment_bytes(const struct options *options, int index);
struct share_compute grant_environment_compute(
	const struct options *options, int index, bool has_time_slices);

/*
 * The lesser of both becomes *compute, where what one does not say is the other's; a weight that is said replaces
 * the other. Returns whether cores or cap changed.
 */
bool grant_lower(struct share_compute *compute, const struct share_compute *by);

/*
 * What is left of what a tenant asks for by its environment or a share of its own, before grant_lower(), where the machine's share says *system
 * of the device (all zero where it says nothing); NULL where there is no such share, and what is asked for is granted. Nobody is sure of cores or
 * has more weight than others because he says so: cores that the machine does not promise are a cap, and a weight counts
 * up to the machine's, which is SHARE_DEFAULT_WEIGHT where it says none.
 */
void grant_bind(struct share_compute *asked, const struct share_compute *system);

/*
 * Under the policy "force" nothing is borrowed, also when a share has lowered the cores below the environment's: they are
 * the cap. After all others; *environment is what grant_environment_compute() said.
 */
void grant_force(struct share_compute *compute, const struct options *options,
	const struct share_compute *environment);

/*
 * How much compute time a slice may save up, in ms: the least burst of the shares in force (of one that says none,
 * SHARE_DEFAULT_BURST_MS), and no more than the environment says. A share that is not in force is NULL.
 */
unsigned grant_burst_ms(
	const struct share *const shares[GRANT_SHARES], const struct options *options);

/* The pipe directory of MPS by the variable's value, NULL for none. */
const char *grant_mps_pipe(const char *value);

/* Whether the share is for clients of the daemon behind that pipe. */
bool grant_is_client(const struct share *share, const char *mps_pipe);

/* A device's part of the multiprocessors, in whole percent, as the driver takes it. */
unsigned grant_mps_percent(const struct share_compute *compute);

/*
 * The folder for time slices: that of the first share in force that has one, else the environment's. NULL for
 * clients of MPS, and where there is none. A share that is not in force is NULL.
 */
const char *grant_turns_path(const struct share *const shares[GRANT_SHARES], const char *mps_pipe,
	const struct options *options);
