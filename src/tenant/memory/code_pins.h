/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that calls under way use: it is not unloaded meanwhile.
 *
 * The driver gives the handle of what was unloaded to what is loaded next. So a call for which something is reserved, or that is known to
 * take nothing, pins the code before that is looked into, and until the driver has answered. The program's unloading waits for
 * these calls, for a minute at most, and none begins for that code until the driver has unloaded it. Launches of functions that were launched before
 * are not pinned (marks.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

/* A module or library, and of a library's module the library, too; 0: none. All zero: nothing is pinned. */
struct code_pin {
	uint64_t owners[2];
	bool is_library; /* the first is one */
};

/*
 * Pins what a function is of, or a kernel in a function's place. No function at all, and one of which a driver does not tell (before CUDA 12.4),
 * pins nothing. CUDA_ERROR_INVALID_HANDLE: there is no such function, or its code is being unloaded for 10 s.
 */
CUresult code_pins_function(CUfunction function, struct code_pin *ret_pin) MUST_CHECK;
CUresult code_pins_library(CUlibrary library, struct code_pin *ret_pin) MUST_CHECK;
/* What is not pinned any more is nothing. */
void code_pins_end(struct code_pin *pin);

#define CODE_PIN_NULL           \
	{                       \
		.owners = { 0 } \
	}

/* A pin that ends with its scope. */
#define CODE_PIN_SCOPE __attribute__((cleanup(code_pins_end))) struct code_pin

/* Until no call uses it, and nobody unloads it; false after a minute. One may come at any moment. */
bool code_pins_wait(const void *owner) MUST_CHECK;

/*
 * Around the driver's call by which the program unloads a module or library. CUDA_ERROR_NOT_READY: a call uses it, or another thread unloads it.
 * CUDA_ERROR_OUT_OF_MEMORY: of our own. In both cases the driver must not be asked.
 */
CUresult code_pins_unload_begin(const void *owner) MUST_CHECK;
void code_pins_unload_end(const void *owner, bool is_gone);

/*
 * The driver has told a library's module in the current context, or a function of it. Its functions are the library's from now on. False
 * without memory: it must not be given out.
 */
bool code_pins_module_of(CUmodule module, CUlibrary library) MUST_CHECK;
bool code_pins_function_of(CUfunction function, CUlibrary library) MUST_CHECK;
/* The driver has loaded a module, which is no library's, whatever had its handle before. */
void code_pins_module(CUmodule module);

/* For a child of fork(). */
void code_pins_reset_after_fork(void);
