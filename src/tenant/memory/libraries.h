/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: what their images tell, and the end of one that did not fit.
 *
 * A library is loaded into a context when it is first used there. What its image does not tell is known after that
 * alone. One that then turns out not to fit is unloaded again, as long as nothing of it was ever given out; its
 * handles are remembered, so that no later call takes them to the driver.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"
#include "tenant/memory/image.h"

struct device;
struct growth;

/* Keeps what a library's image tells; false without memory, and where another thread has given its handle to another one. */
bool libraries_keep(CUlibrary library, const struct image *image) MUST_CHECK;

/*
 * Unloads it in the driver, whose answer is returned, and forgets it. Nothing of it is under its handle when the driver is
 * asked, which may give that to the next one before we hear of the end.
 */
CUresult libraries_end(CUlibrary library);

/* The number of a library, which no other one of this process has; 0: it is not known. */
uint64_t libraries_number(CUlibrary library);

/*
 * Contexts in which a library is loaded: it takes nothing there any more but for functions. By the number that it had when its
 * use began, and the context's life (contexts.h); nothing is noted for 0.
 */
void libraries_loaded_in(uint64_t number, uint64_t life);
bool libraries_is_loaded_in(CUlibrary library, uint64_t life);
void libraries_life_ended(struct device *device, uint64_t life);

/* What the library will take when it is loaded into one more context; nothing is known of another's library. */
struct image libraries_image(CUlibrary library);

/*
 * Around every call of the driver with a library, or a kernel of one: false where it was unloaded here, or is just
 * being, and the driver must not see it.
 */
bool libraries_enter(const void *handle) MUST_CHECK;
void libraries_leave(void);

/* Within such a call: something of it is given out now, so it is never unloaded here. growth: what it took. */
void libraries_used(CUlibrary library, const struct growth *growth);

/*
 * Unloads it in the driver, gives back what it took of the current context's device, and remembers its handles; false
 * where it must stay: for good, or as long as a call holds that off for too long, uses it (code_uses.h), or makes an executable graph (makings.h). The
 * last of these unloads it then. Outside of a call with a library.
 */
bool libraries_unload(CUlibrary library, struct device *device);

/* After the end of a call that may have kept one from being unloaded. Never waits. */
void libraries_unload_put_off(void);

/* The program unloads what was unloaded here already. */
bool libraries_unloaded(CUlibrary library);

/* The driver has given out a handle, or all of a library or module: what had such an address before is no more. */
void libraries_given(const void *handle);
void libraries_given_library(CUlibrary library);
void libraries_given_module(CUmodule module);

/* For a child of fork(). */
void libraries_reset_after_fork(void);
