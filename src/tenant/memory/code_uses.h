/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many calls under way use what is unloaded as one: a module, a library, or all of a life of a context. No call begins to use what is being
 * unloaded. Who finds out what a call uses, and waits, is above this (code_pins.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

/* CUDA_ERROR_NOT_READY: it is being unloaded. CUDA_ERROR_OUT_OF_MEMORY: of our own. */
CUresult code_uses_begin(uint64_t owner) MUST_CHECK;
void code_uses_end(uint64_t owner);

/* Whether a call uses it. */
bool code_uses_are_any(uint64_t owner);
/* Whether this thread is in a call that uses anything: it would wait for itself. */
bool code_uses_are_own(void);

/*
 * Around the driver's call that unloads it. CUDA_ERROR_NOT_READY: a call uses it, or another thread unloads it. CUDA_ERROR_OUT_OF_MEMORY: of our
 * own. In both cases the driver must not be asked.
 */
CUresult code_uses_unload_begin(uint64_t owner) MUST_CHECK;
void code_uses_unload_end(uint64_t owner);

/* The same beside calls that use it: no further one begins. false: another thread unloads it, or of our own memory there is none. */
bool code_uses_close(uint64_t owner) MUST_CHECK;

/* For a child of fork(). */
void code_uses_reset_after_fork(void);
