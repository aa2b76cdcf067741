/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that calls under way use: it is not unloaded meanwhile, and its context does not end.
 *
 * The driver gives the handle of what was unloaded to what is loaded next. So a call for which something is reserved, or that is known to
 * take nothing, pins the code before that is looked into, and until the driver has answered. What unloads it waits for
 * these calls, for a minute at most, and none begins for that code until the driver has unloaded it. Launches of functions that were launched before
 * are not pinned, but waited for as well (launching.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

#define CODE_PIN_OWNERS 3

/* A module or library, of a library's module the library, too, and the life of the context; 0: none. All zero: nothing is pinned. */
struct code_pin {
	uint64_t owners[CODE_PIN_OWNERS];
	bool is_library; /* the first is one */
};

/*
 * Pins what a function is of, or a kernel in a function's place. No function at all pins nothing, and one of which a driver does not tell (before CUDA
 * 12.4) the context alone. CUDA_ERROR_INVALID_HANDLE: there is no such function, or its code is being unloaded for 10 s.
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

/*
 * Around the driver's call by which the program unloads a module or library, or ends a life of a context (contexts.h; 0: none that is known): no call uses
 * it, no launch of it is on its way, and no executable graph is made (makings.h). CUDA_ERROR_NOT_READY: one is, for so long, or this thread is in such a call itself.
 * CUDA_ERROR_OUT_OF_MEMORY: of our own. In both cases the driver must not be asked.
 */
#define CODE_PINS_WAIT_NS UINT64_C(60000000000) /* a call may compile */
CUresult code_pins_unload_begin(uint64_t owner, uint64_t longest_ns) MUST_CHECK;
void code_pins_unload_end(uint64_t owner, bool is_gone);

/*
 * The same for what the library unloads itself, as it did not fit. Nothing of it was given out, so only who has guessed its handle can
 * have it waiting; after a minute it goes all the same.
 */
struct code_pins_own {
	uint64_t owner;
	bool is_closed, is_change;
};
struct code_pins_own code_pins_own_unload_begin(uint64_t owner);
void code_pins_own_unload_end(const struct code_pins_own *own);

/*
 * The driver is about to give room for frames back. No launch is on its way that was found to take nothing, and until marks_room_end() (marks.h) none is found so.
 * False where one takes too long, or this thread is in one itself.
 */
bool code_pins_room_begin(void) MUST_CHECK;

/*
 * The driver has told a library's module in the current context, or loaded the library there. The module's functions are the library's from now on.
 * False without memory: nothing of it must be given out.
 */
bool code_pins_module_of(CUmodule module, CUlibrary library) MUST_CHECK;
bool code_pins_library_loaded(CUlibrary library) MUST_CHECK;
/* The driver has loaded a module in the current context, which is no library's, whatever had its handle before. False without memory: it must go again. */
bool code_pins_module(CUmodule module) MUST_CHECK;

struct device;
void code_pins_life_ended(struct device *device, uint64_t life);

/*
 * The context of which a function is that is pinned: there the driver takes what it needs, in whichever stream or graph it runs. NULL: it is not
 * known, or it is a kernel, which is where it is launched.
 */
CUcontext code_pins_context(const struct code_pin *pin);

/* For a child of fork(). */
void code_pins_reset_after_fork(void);
