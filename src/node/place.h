/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tenant library and the simulated node lie, seen from this program. */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define PLACE_BYTES 4096

/*
 * The tenant library: in $VGPU_LIBDIR where that is set, else beside this program as installed, else
 * in the build folder that it was built in. -ENOENT with all the places named; -EINVAL where the
 * path cannot stand in LD_PRELOAD.
 */
int place_find_library(char ret_path[PLACE_BYTES], struct err *err) MUST_CHECK;

/* The simulated node, looked for likewise. */
struct place_sim {
	char library_path[2 * PLACE_BYTES]; /* its folders, as LD_LIBRARY_PATH takes them */
	char nvml[PLACE_BYTES];		    /* its libnvidia-ml.so.1 */
	char cuda[PLACE_BYTES];		    /* its libcuda.so.1 */
};
int place_find_sim(struct place_sim *ret_sim, struct err *err) MUST_CHECK;

/* The simulated nvidia-cuda-mps-control, looked for likewise. */
int place_find_sim_mps(char ret_path[PLACE_BYTES], struct err *err) MUST_CHECK;
